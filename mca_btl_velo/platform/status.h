/* Status codes of the engine, in C so that the interface and everything below it share one enumeration. */
#ifndef VELO_PLATFORM_STATUS_H
#define VELO_PLATFORM_STATUS_H

typedef enum velo_status {
    VELO_OK = 0,     /* done: the operation is complete, its buffers are the caller's again */
    VELO_QUEUED = 1, /* accepted: the completion callback will come; buffers stay the engine's until then */
    VELO_WOULD_BLOCK = 2, /* nothing was sent; use velo_send_start, which queues */
    VELO_ERR_PARAMETER =
        -1, /* a parameter is wrong; the message names it. Do not go on without correcting it */
    VELO_ERR_RESOURCE = -2, /* memory, shared memory or files ran out; the message names which and how much */
    VELO_ERR_MISMATCH =
        -3, /* the peer runs with other values or another Velo; the message names the parameter */
    VELO_ERR_UNREACHABLE = -4, /* the peer's mailbox cannot be attached from here; try another transport */
    VELO_ERR_PROTOCOL = -5,    /* a peer wrote something impossible; the job cannot go on */
    VELO_ERR_REMOTE = -6,      /* the kernel or the peer refused a remote memory access */
    VELO_ERR_UNSUPPORTED = -7  /* no such operation, or operands that it cannot take */
} velo_status;

#endif
