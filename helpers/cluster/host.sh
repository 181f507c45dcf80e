# The first process of a host, in new namespaces: sh host.sh FOLDER NAME ADDRESS (or of the switch: sh host.sh switch).
# It says "ready", a host then waits for a line (its network is there), and it lives until its standard input closes.
set -e
if [ "$1" = switch ]; then
    ip link add switch type bridge && ip link set switch up
    echo ready
    exec cat
fi
mount -t tmpfs tmpfs /run && mkdir /run/sshd
[ ! -d /dev/shm ] || mount -t tmpfs -o mode=1777 tmpfs /dev/shm
echo 'root:*:19000:0:99999:7:::' > "$1/shadow" # no password, and not locked: sshd refuses locked accounts
echo 'sshd:*:19000::::::' >> "$1/shadow"
mount --bind "$1/shadow" /etc/shadow
mount --bind "$1/hosts" /etc/hosts
cat > "$1/ssh_config" << END
IdentityFile $1/key
IdentitiesOnly yes
UserKnownHostsFile $1/known_hosts
StrictHostKeyChecking yes
LogLevel ERROR
END
[ -e /etc/ssh/ssh_config ] && mount --bind "$1/ssh_config" /etc/ssh/ssh_config
cat > "$1/$2.sshd" << END
ListenAddress $3
HostKey $1/key
AuthorizedKeysFile $1/key.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PidFile none
Subsystem sftp internal-sftp
SetEnv PATH=$PATH TMPDIR=$1/tmp TF_CPP_MIN_LOG_LEVEL=3
END
echo "$2" > /proc/sys/kernel/hostname
ip link set lo up
echo ready
read -r network_is_there
"$(command -v sshd)" -D -e -f "$1/$2.sshd" 2> "$1/$2.log" &
cat
