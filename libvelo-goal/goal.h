/* GOAL: communication as graphs of sends, receives and local operations, compiled into schedules that Velo
 * runs. After Schneider, Eckelmann: ESPGOAL (Chemnitz 2011), chapter 2, with that paper's names and
 * arguments.
 *
 *     cc program.c $(pkg-config --cflags --libs velo-goal)         (mpicc, or the flags of Open MPI)
 *     mpirun --mca pml ob1 --mca btl velo -np 2 ./a.out
 *
 * Processes are the ranks of a group: those of MPI_COMM_WORLD after GOAL_Init. Each makes its own part of a
 * communication as a graph, compiles it, and runs it as often as it likes. All processes of a group that take
 * part in a communication run their schedules in the same order, as they call collectives of a communicator:
 * the n-th run of one meets the n-th of the others and no other one, whatever the tags. A rank that has
 * nothing to do in it runs an empty schedule.
 *
 * Errors. A call that fails tells the error handler the call, the argument and what is wrong with it, and
 * then returns what is said of it here: a negative GOAL_ERR_*, NULL or GOAL_INVALID_VERTEX. The handler is
 * GOAL_ErrorsAbort unless GOAL_SetErrorHandler has set another one: it prints the text and ends the job, as
 * MPI does. "Any call" may fail with GOAL_ERR_STATE before GOAL_Init or after GOAL_Finalize, and with
 * GOAL_ERR_MEMORY.
 *
 * Threads. With MPI_THREAD_MULTIPLE several threads may call GOAL_ at a time, each with graphs, schedules and
 * handles that no other one uses at that time. As the order of runs has to be the same at all processes, such
 * threads have a group each: GOAL_InitComm, and the calls that end in _r. Otherwise one thread calls at a
 * time.
 *
 * In C++ trailing arguments have defaults; in C they are to be passed. */
#ifndef GOAL_H
#define GOAL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define _GOAL_DEFAULT(value) = value
#define _GOAL_ENUM : int /* as in C: a value that has no name is one all the same */
extern "C" {
#else
#define _GOAL_DEFAULT(value)
#define _GOAL_ENUM
#endif
#define _GOAL_API __attribute__((visibility("default")))

typedef struct _GOAL_Group* GOAL_Group;       /* processes that run schedules together */
typedef struct _GOAL_Graph* GOAL_Graph;       /* a process's part in a communication, being made */
typedef struct _GOAL_Schedule* GOAL_Schedule; /* the same compiled: it can be run, not changed */
typedef uint32_t GOAL_Vertex; /* an operation of a graph; those of a graph are numbered from 0 */
#define GOAL_INVALID_VERTEX UINT32_MAX

/* A run. Good until GOAL_Wait has returned for it or its schedule is freed. */
typedef struct GOAL_Handle {
    struct _GOAL_Run* _run;
    uint64_t _number;
} GOAL_Handle;

/* Where a buffer is. */
typedef enum GOAL_MemType _GOAL_ENUM {
    GOAL_USERSPACE, /* at its address, while a run is under way */
    GOAL_SCRATCHPAD /* the "address" is an offset in bytes in the scratchpad of the run */
} GOAL_MemType;

typedef enum GOAL_DataType _GOAL_ENUM { GOAL_SINT, GOAL_UINT, GOAL_FLOAT } GOAL_DataType;

/* result[i] = b1[i] op b2[i]. Types and widths: GOAL_SINT and GOAL_UINT of 8, 16, 32 and 64 bits; GOAL_FLOAT
 * of 32 and 64 bits (float, double), and of 16 where the compiler of Velo had _Float16; GOAL_AND, GOAL_OR and
 * GOAL_XOR take no floats. Integers wrap; what is divided by zero is 0. */
typedef enum GOAL_Op _GOAL_ENUM {
    GOAL_MAX,
    GOAL_MIN,
    GOAL_ADD,
    GOAL_SUB,
    GOAL_DIV,
    GOAL_MUL,
    GOAL_COPY, /* result[i] = b1[i]; b2 is not looked at */
    GOAL_AND,
    GOAL_OR,
    GOAL_XOR,
    GOAL_WTIME /* stores the time in seconds, a double (64 bits), in the result; b1, b2, type, width and
                * number of elements are not looked at. Only differences between times of one process mean
                * anything. */
} GOAL_Op;

/* --- errors */

/* Of what is over, handles are told; graphs, schedules and groups that have been freed are not, as memory is
 * not. */
enum {
    GOAL_SUCCESS = 0,
    GOAL_ERR_ARGUMENT = -1, /* an argument is wrong, or a handle of a run that is over */
    GOAL_ERR_STATE = -2,    /* not now: before GOAL_Init, after GOAL_Finalize or MPI_Finalize, twice */
    GOAL_ERR_GRAPH = -3,    /* GOAL_Compile: requirements form a cycle; the text has its operations */
    GOAL_ERR_VELO = -4,     /* this process does not use Velo, or another version of it */
    GOAL_ERR_MEMORY = -5,
    GOAL_ERR_RUN = -6 /* a run has failed; the text says at which operation */
};

/* `text` names the call and the argument; it is the library's. */
typedef void (*GOAL_ErrorHandler)(int error, const char* text);

/* Prints the text and ends the job by MPI_Abort. */
_GOAL_API void GOAL_ErrorsAbort(int error, const char* text);
/* Does nothing, so that the call returns its error. */
_GOAL_API void GOAL_ErrorsReturn(int error, const char* text);
/* For all calls of the process, at any time. Returns the handler before; NULL is GOAL_ErrorsAbort. */
_GOAL_API GOAL_ErrorHandler GOAL_SetErrorHandler(GOAL_ErrorHandler handler);
/* The text of this thread's last error; "" if there was none. Good until its next one. */
_GOAL_API const char* GOAL_ErrorText(void);

/* --- beginning and end (2.2.1) */

/* After MPI_Init, once in a process; all processes of MPI_COMM_WORLD call it. GOAL_SUCCESS, or GOAL_ERR_STATE
 * (MPI is not initialised, or it is the second time), GOAL_ERR_VELO. */
_GOAL_API int GOAL_Init(void);
/* 1 after GOAL_Init, also after GOAL_Finalize; else 0. */
_GOAL_API int GOAL_IsInitialized(void);
/* Before MPI_Finalize, when each run of the group of GOAL_Init has been waited for, or GOAL_Test has said
 * that it has finished (else GOAL_ERR_STATE); all processes of the group call it. What is left of its graphs
 * and schedules can only be freed. */
_GOAL_API int GOAL_Finalize(void);
/* 1 before GOAL_Init and after GOAL_Finalize, else 0. */
_GOAL_API int GOAL_IsFinalized(void);

/* Processes of the group, and which of them this is, from 0. Neither changes. */
_GOAL_API int GOAL_GroupSize(void);
_GOAL_API int GOAL_MyRank(void);

/* Groups (extension GOAL_EXTENSION_GROUPS): the processes of an intra-communicator in its order, with runs of
 * their own. All of them call GOAL_InitComm, and GOAL_FreeGroup, which sets *group to NULL. Neither needs
 * GOAL_Init. `comm` may be freed between them. Errors as of GOAL_Init and GOAL_Finalize, and
 * GOAL_ERR_ARGUMENT. */
_GOAL_API int GOAL_InitComm(MPI_Comm comm, GOAL_Group* group);
_GOAL_API int GOAL_FreeGroup(GOAL_Group* group);
_GOAL_API int GOAL_GroupSize_r(GOAL_Group group);
_GOAL_API int GOAL_MyRank_r(GOAL_Group group);

/* --- graphs (2.2.2) */

/* An empty one; NULL is an error. What is made of it, schedules and runs, belongs to the same group. */
_GOAL_API GOAL_Graph GOAL_CreateGraph(void);
_GOAL_API GOAL_Graph GOAL_CreateGraph_r(GOAL_Group group);
/* Schedules that were compiled from it stay. */
_GOAL_API int GOAL_FreeGraph(GOAL_Graph graph);

/* --- operations (2.2.3): each returns its vertex, or GOAL_INVALID_VERTEX with GOAL_ERR_ARGUMENT.
 *
 * An operation has finished when its buffers may be used by others: that a send has finished does not say
 * that its message has been received. A send that others of its graph require finishes without its receive
 * up to btl_velo_eager_limit bytes; any other one may wait for it. Operations that nothing orders may run at the same time. Messages from
 * one process to another with the same tag meet the receives in the order in which both are started. */

/* Sends `count` bytes, 0 or more, at `buf` to rank `dest` of the group, itself perhaps; `tag` is 0 or more.
 */
_GOAL_API GOAL_Vertex GOAL_Send(GOAL_Graph graph, void* buf, int count, int dest, int tag _GOAL_DEFAULT(0),
                                GOAL_MemType mem _GOAL_DEFAULT(GOAL_USERSPACE));
/* Receives a message of `count` bytes from rank `source` with that tag. One of another size fails the run. */
_GOAL_API GOAL_Vertex GOAL_Recv(GOAL_Graph graph, void* buf, int count, int source, int tag _GOAL_DEFAULT(0),
                                GOAL_MemType mem _GOAL_DEFAULT(GOAL_USERSPACE));

/* The same for data in `num_elements` pieces, lengths[i] bytes at offsets[i], which travel without gaps in
 * their order. The receiver may cut differently, or not at all. The lists are copied; the data is read when
 * the operation runs. All pieces are in the memory `mem`. */
_GOAL_API GOAL_Vertex GOAL_SendVec(GOAL_Graph graph, void** offsets, int* lengths, int num_elements, int dest,
                                   int tag _GOAL_DEFAULT(0), GOAL_MemType mem _GOAL_DEFAULT(GOAL_USERSPACE));
_GOAL_API GOAL_Vertex GOAL_RecvVec(GOAL_Graph graph, void** offsets, int* lengths, int num_elements, int src,
                                   int tag _GOAL_DEFAULT(0), GOAL_MemType mem _GOAL_DEFAULT(GOAL_USERSPACE));

/* bres[i] = b1[i] op b2[i] for `num_elements` elements of type `dt` and `element_width` bits. The result may
 * be in place of b1 or b2, but not overlap them otherwise (GOAL_ERR_ARGUMENT). */
_GOAL_API GOAL_Vertex GOAL_LocalOp(GOAL_Graph graph, void* b1, void* b2, void* bres, GOAL_Op op,
                                   GOAL_DataType dt, int element_width, int num_elements,
                                   GOAL_MemType b1_mem _GOAL_DEFAULT(GOAL_USERSPACE),
                                   GOAL_MemType b2_mem _GOAL_DEFAULT(GOAL_USERSPACE),
                                   GOAL_MemType b3_mem _GOAL_DEFAULT(GOAL_USERSPACE));
/* The same with buffers in pieces, cut as you like: the lengths, in bytes, of each buffer come to the same
 * number of whole elements. */
_GOAL_API GOAL_Vertex GOAL_LocalOpVec(GOAL_Graph graph, void** buf1, int* lengths1, int num_elements1,
                                      void** buf2, int* lengths2, int num_elements2, void** buf3,
                                      int* lengths3, int num_elements3, char datatype, char datatype_width,
                                      char op, GOAL_MemType b1_temp _GOAL_DEFAULT(GOAL_USERSPACE),
                                      GOAL_MemType b2_temp _GOAL_DEFAULT(GOAL_USERSPACE),
                                      GOAL_MemType b3_temp _GOAL_DEFAULT(GOAL_USERSPACE));

/* --- requirements (2.2.4) and scratchpad (2.2.5) */

/* `target` starts when `prereq` has finished. Both are vertices of this graph. */
_GOAL_API int GOAL_Requires(GOAL_Graph graph, GOAL_Vertex prereq, GOAL_Vertex target);

/* Memory that each run has for itself, for buffers with GOAL_SCRATCHPAD; its content at the beginning is
 * undefined. Once for a graph (GOAL_ERR_STATE); no operation may reach beyond it (GOAL_ERR_ARGUMENT of the
 * operation, or of this call if it comes later). */
_GOAL_API int GOAL_AllocateScratchpad(GOAL_Graph graph, size_t bytes);

/* --- schedules (2.2.6) */

/* NULL with GOAL_ERR_GRAPH: there is a cycle. The graph may be extended and compiled again. */
_GOAL_API GOAL_Schedule GOAL_Compile(GOAL_Graph graph);
/* 1, as Velo never invalidates a schedule by running it; 0 for NULL. */
_GOAL_API int GOAL_IsScheduleValid(GOAL_Schedule sched);
/* For portable programs: with Velo each schedule is reusable. */
_GOAL_API void GOAL_MakeScheduleReusable(GOAL_Schedule sched);
/* GOAL_ERR_STATE if a run of it is under way. Its handles are over. */
_GOAL_API int GOAL_FreeSchedule(GOAL_Schedule sched);

/* --- runs (2.2.7) */

/* Starts what can start, and returns. The same schedule may be started again while a run of it is under way;
 * its buffers in user space are then those of both. A handle that GOAL_Test refuses: it could not be started.
 */
_GOAL_API GOAL_Handle GOAL_Run(GOAL_Schedule sched);
/* 1 if the run has finished, 0 if not; never blocks. GOAL_ERR_RUN if it has failed. The handle stays good. */
_GOAL_API int GOAL_Test(GOAL_Handle handle);
/* Returns when the run has finished: GOAL_SUCCESS or GOAL_ERR_RUN. Ends the handle, so that a second one is
 * GOAL_ERR_ARGUMENT. What was started and is neither waited for nor freed with its schedule keeps some bytes.
 */
_GOAL_API int GOAL_Wait(GOAL_Handle handle);

/* --- extensions (2.3) */

typedef enum GOAL_ExtensionId _GOAL_ENUM {
    GOAL_EXTENSION_GROUPS, /* GOAL_InitComm, GOAL_FreeGroup, GOAL_*_r */
    GOAL_EXTENSION_ANY,    /* GOAL_ANY_SOURCE and GOAL_ANY_TAG in GOAL_Recv and GOAL_RecvVec */
    GOAL_EXTENSION_START,  /* GOAL_RequiresStart */
    GOAL_EXTENSION_CALL    /* GOAL_Call: local operations that the program defines */
} GOAL_ExtensionId;
/* 1 or 0. */
_GOAL_API int GOAL_IsExtensionAvailable(GOAL_ExtensionId ext);

#define GOAL_ANY_SOURCE (-1)
#define GOAL_ANY_TAG (-1)

/* `target` starts when `prereq` has been started: gives receives of one source and tag their order, for
 * instance. */
_GOAL_API int GOAL_RequiresStart(GOAL_Graph graph, GOAL_Vertex prereq, GOAL_Vertex target);

/* Calls function(argument), in a thread that is in GOAL_Test, GOAL_Wait or a call of MPI. It calls neither
 * GOAL_ nor MPI. */
_GOAL_API GOAL_Vertex GOAL_Call(GOAL_Graph graph, void (*function)(void* argument), void* argument);

#ifdef __cplusplus
}
#endif
#undef _GOAL_DEFAULT
#undef _GOAL_ENUM
#undef _GOAL_API
#endif
