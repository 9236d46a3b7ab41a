// Preloaded into the real program under mpirun: a bit flips in what one rank sends or receives, as in a bad
// memory module or link; the number stays finite. What it does comes from the environment:
//
//   BIT_FLIP_CALL  MPI_Iallgather (weights) or MPI_Ialltoall (gradients); not set: none
//   BIT_FLIP_SIDE  receive: in what came from another rank; send: in the sender's own memory, where it stays
//   BIT_FLIP_RANK  on this rank
//   BIT_FLIP_AT    in this call of that function, from 1; calls that are short or of MPI_COMM_WORLD carry no tensors
//                  of a step and are not counted
//   BIT_FLIP_THEN  flips a bit in this call, too; not set: only once
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBlock = 64, kFewestBlocks = 8 };  // tensors travel in blocks of 64 bytes (src/comm/mpi.cc)

typedef int Collective(const void*, int, void*, void*, int, void*, void*, void*);
typedef int Test(void*, int*, void*);

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? value : "";
}

static int strikes(const char* name, int count, const void* comm) {
  static int calls = 0;
  if (comm == dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world")) return 0;
  if (strcmp(setting("BIT_FLIP_CALL"), name) != 0 || count < kFewestBlocks) return 0;
  if (strcmp(setting("BIT_FLIP_RANK"), setting("OMPI_COMM_WORLD_RANK")) != 0) return 0;
  ++calls;
  return calls == atoi(setting("BIT_FLIP_AT")) || calls == atoi(setting("BIT_FLIP_THEN"));
}

// The highest bit of a mantissa in f32.
static void flip(void* part, int count) {
  uint32_t* words = part;
  const int length = count * kBlock / 4;
  for (int i = length / 2; i < length; ++i) {
    if ((words[i] & 0x7FFFFFFFu) == 0) continue;
    words[i] ^= 0x400000u;
    fprintf(stderr, "bit_flip: struck\n");
    return;
  }
}

// The bytes in which a bit will flip once they have come. Only the thread that waits for them uses this.
static struct {
  void* request;
  void* part;
  int count;
} awaited;

static int call(const char* name, const void* from, int sent, void* type, void* to, int count, void* to_type, void* comm,
                void* request) {
  Collective* real = (Collective*)dlsym(RTLD_NEXT, name);
  const int now = strikes(name, count, comm), sending = strcmp(setting("BIT_FLIP_SIDE"), "send") == 0;
  if (now && sending) flip((void*)from, count);
  const int result = real(from, sent, type, to, count, to_type, comm, request);
  const int other = strcmp(setting("BIT_FLIP_RANK"), "0") == 0 ? 1 : 0;
  if (now && !sending) {
    awaited.part = (char*)to + (size_t)other * (size_t)count * kBlock;
    awaited.count = count;
    awaited.request = request;
  }
  return result;
}

int MPI_Test(void* request, int* done, void* status) {
  const int result = ((Test*)dlsym(RTLD_NEXT, "MPI_Test"))(request, done, status);
  if (*done && request == awaited.request) {
    awaited.request = NULL;
    flip(awaited.part, awaited.count);
  }
  return result;
}

int MPI_Iallgather(const void* from, int sent, void* type, void* to, int count, void* to_type, void* comm, void* request) {
  return call("MPI_Iallgather", from, sent, type, to, count, to_type, comm, request);
}

int MPI_Ialltoall(const void* from, int sent, void* type, void* to, int count, void* to_type, void* comm, void* request) {
  return call("MPI_Ialltoall", from, sent, type, to, count, to_type, comm, request);
}
