# `nproc`, OpenMP and the numeric libraries of Python take the number of vCPUs from here. They would
# start a thread for each CPU of the node otherwise.
if [ -z "${OMP_NUM_THREADS-}" ]; then
    OMP_NUM_THREADS=$(/usr/local/lib/wharf/vcpus) && export OMP_NUM_THREADS
fi
