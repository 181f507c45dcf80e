# A Slurm node for trying things out: sh slurm_node.sh FOLDER NODES, as root on each node, first on the one that
# schedules. FOLDER: shared by the nodes, holds munge.key (128 random bytes, readable by root alone). NODES: host[0-1].
set -e
export SLURM_CONF="$1/slurm.conf"
mkdir -p /run/munge "$1/state"
munged --force --key-file="$1/munge.key" --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/munged.pid \
    --seed-file=/run/munge/seed --log-file="$1/munged-$(hostname).log"
if [ ! -e "$SLURM_CONF" ]; then
    cat > "$SLURM_CONF" << END
ClusterName=course
SlurmctldHost=$(hostname)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool-%n
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd-%n.pid
SlurmctldLogFile=$1/slurmctld.log
SlurmdLogFile=$1/slurmd-%n.log
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=$2 CPUs=2
PartitionName=all Nodes=ALL Default=YES
END
    slurmctld
fi
slurmd
