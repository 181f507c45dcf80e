# The first process in new namespaces. When it ends, the kernel kills all others in them and removes the namespaces.
# It says "ready" when they are set up, and lives until its standard input closes.
#
#   sh namespaces.sh switch FOLDER          a bridge; at the end it removes FOLDER
#   sh namespaces.sh host FOLDER NAME UID GID   a host; after "ready" it waits for a line: its network is there
#   sh namespaces.sh serve FOLDER NAME      the host's last step: the ssh server
set -e
role="$1" folder="$2" name="$3" uid="$4" gid="$5"

case "$role" in
switch)
    ip link add switch type bridge
    ip link set switch up
    echo ready
    cat
    turns=0
    while [ -e "$folder" ] && [ $turns -lt 100 ]; do  # the hosts end at this moment, and may still write
        rm -rf "$folder" 2> /dev/null || sleep 0.1
        turns=$((turns + 1))
    done
    ;;

host)
    hostname "$name"
    ip link set lo up
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir /run/sshd
    if [ -d /dev/shm ]; then
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    fi
    mount --bind "$folder/hosts" /etc/hosts
    if [ -e /etc/ssh/ssh_config ]; then
        mount --bind "$folder/ssh_config" /etc/ssh/ssh_config
    fi
    if [ "$uid" = 0 ]; then
        mount --bind "$folder/shadow" /etc/shadow
    else
        echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start  # sshd is not root there, and listens on port 22
    fi
    echo ready
    read -r network_is_there
    if [ "$uid" = 0 ]; then
        exec sh "$0" serve "$folder" "$name"
    fi
    # until here the user was root of these namespaces alone; from here on he is himself again
    exec unshare --user --map-user="$uid" --map-group="$gid" sh "$0" serve "$folder" "$name"
    ;;

serve)
    "$(command -v sshd)" -D -e -f "$folder/$name.sshd_config" 2> "$folder/$name.sshd.log" &
    cat
    ;;
esac
