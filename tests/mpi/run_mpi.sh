#!/bin/sh
# Runs tests of groups over MPI with each launcher that the machine has, on this machine only. Arguments: the program. Exits with 77, which
# skips the test, if there is no launcher.
program=$1
output=$(mktemp) || exit 1
trap 'rm -f "$output"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_plm=isolated OMPI_MCA_oob_tcp_if_include=lo
runs=0

# start LAUNCHER LIBRARY PROCESSES CASE: the output is in $output, the status in $status.
start() {
    case $1 in
    *openmpi) options="--oversubscribe" ;;
    *) options="-launcher fork -iface lo" ;;
    esac
    SCALIDE_MPI=$2 timeout 60 "$1" $options -n "$3" "$program" "$4" "$3" >"$output" 2>&1 </dev/null
    status=$?
}

wrong() {
    echo "$launcher: $1 (status $status):"
    cat "$output"
    exit 1
}

# expect_all PROCESSES CASE: each process ends well.
expect_all() {
    start "$launcher" "$library" "$1" "$2"
    [ $status -eq 0 ] && [ "$(grep -o ok "$output" | wc -l)" -eq "$1" ] || wrong "$2 with $1 processes must end well"
}

# expect_end CASE TEXT: the job ends, before the limit of time, with a text of the rank that failed (empty: with any output).
expect_end() {
    start "$launcher" "$library" 3 "$1"
    [ $status -ne 0 ] && [ $status -ne 124 ] || wrong "$1 must end all processes"
    ! grep -q '^wrong\|^ok' "$output" || wrong "$1 must end all processes before their end"
    [ -z "$2" ] || grep -q "$2" "$output" || wrong "$1 must report: $2"
}

for pair in mpirun.openmpi:libmpi.so.40 mpirun.mpich:libmpich.so.12; do
    launcher=${pair%:*} library=${pair#*:}
    command -v "$launcher" >/dev/null || continue
    runs=$((runs + 1))
    for processes in 1 2 4; do expect_all $processes sum; done
    expect_all 2 application
    expect_all 4 split
    expect_all 3 differ
    expect_end fail 'scalide: process 1 ends the MPI job: net.sum_x: the kernel failed with error -7'
    expect_end leave ''
    found=$library library=
    expect_all 2 sum # the library that belongs to the launcher is found
    library=$found
    echo "$launcher: ok"
done
[ $runs -gt 0 ] && exit 0
echo "no mpirun.openmpi and no mpirun.mpich: install openmpi-bin or mpich"
exit 77
