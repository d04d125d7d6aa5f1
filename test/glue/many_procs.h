/* A job of many processes on one node as the glue of its first process sees it: Open MPI's library with stand-ins for the
 * process manager and for the other processes, whose addresses all lead to this one. */
#ifndef VELO_TEST_MANY_PROCS_H
#define VELO_TEST_MANY_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/velo.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MANY_PROCS_JOB = 77 };

/* False if this Open MPI's process manager cannot be stood in for. */
bool many_procs_possible(void);
/* The engine, for a job of so many processes. Gives the published address the name of another process: `rename`. */
velo_engine *many_procs_open(const char *flow_control, uint32_t size, void (*rename)(void *address, uint64_t name));
void many_procs_close(void);
/* Another component acquires the engine and releases it, and is unloaded. */
void many_procs_visit(void);
/* add_procs for all of them at once, of those in the range [first, first + count). */
void many_procs_add(uint32_t first, uint32_t count);

/* What the last add_procs has given. */
const void *many_procs_endpoint(uint32_t rank);
bool many_procs_reachable(uint32_t rank);
/* How often the process manager was asked for an address. */
uint64_t many_procs_lookups(void);

#ifdef __cplusplus
}
#endif
#endif
