"""How a run under mpirun ends when one rank does: the control connections beside MPI end the other ranks. mpirun itself
must have no part in it, so each rank runs below a shell that outlives it until all have ended.

usage: mpi_end_test.py MPIRUN PROGRAM CASE CODE,CODE,...   (the exit code of each rank; 137: killed by signal 9)"""
import os
import subprocess
import sys
import tempfile

mpirun, program, case, codes = sys.argv[1:]
expected = [int(code) for code in codes.split(",")]
with tempfile.TemporaryDirectory(prefix="tokamak-end-") as folder:
    shell = (f'"{program}" "{case}"; echo $? >{folder}/$OMPI_COMM_WORLD_RANK.code; '
             f"until [ $(cat {folder}/*.code | wc -l) -ge {len(expected)} ]; do sleep 0.05; done; "
             f"echo $OMPI_COMM_WORLD_RANK is over")
    done = subprocess.run([mpirun, "-n", str(len(expected)), "--oversubscribe", "--bind-to", "none", "sh", "-c", shell],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, check=False)
    found = []
    for rank in range(len(expected)):
        path = f"{folder}/{rank}.code"
        found.append(int(open(path).read()) if os.path.exists(path) else None)
if found != expected:
    sys.exit(f"exit codes by rank: {found}, expected {expected}\n{done.stdout}")
