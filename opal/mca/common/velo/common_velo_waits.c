/* Open MPI 4.1 waits for other processes inside its process manager without making progress: in MPI_Comm_disconnect,
 * MPI_Comm_spawn, MPI_Comm_accept and MPI_Comm_connect. A process that still owes a packet, because it has no credit yet,
 * would never send it, and whoever waits for the packet would never come. So a thread of its own waits, and the thread of
 * the application makes progress meanwhile. From 5.0 on libmpi calls PMIx directly, where no component can take part. */
#include "common_velo_internal.h"

#if MCA_COMMON_VELO_MANAGER_IS_A_FRAMEWORK

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "opal/runtime/opal_progress.h"

static opal_pmix_base_module_t manager; /* what waits by itself; empty where nothing is replaced */

typedef struct wait_s {
    int (*call)(const struct wait_s *wait);
    opal_list_t *list, *directives;
    int collect;
    int status;
    atomic_bool done;
} wait_t;

static int fence(const wait_t *wait)
{
    return manager.fence(wait->list, wait->collect);
}

static int connect_to(const wait_t *wait)
{
    return manager.connect(wait->list);
}

static int disconnect_from(const wait_t *wait)
{
    return manager.disconnect(wait->list);
}

static int look_up(const wait_t *wait)
{
    return manager.lookup(wait->list, wait->directives);
}

static void *wait_aside(void *argument)
{
    wait_t *wait = (wait_t *) argument;
    wait->status = wait->call(wait);
    atomic_store_explicit(&wait->done, true, memory_order_release);
    return NULL;
}

static int progress_during(wait_t *wait)
{
    pthread_t thread;
    sigset_t all, before;
    /* Signals are for the application's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int refused = pthread_create(&thread, NULL, wait_aside, wait);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (0 != refused) {
        return wait->call(wait); /* as Open MPI does by itself */
    }
    /* Such a wait takes milliseconds, and the processes waited for may need this processor. */
    enum { FIRST_POLLS = 1000 };
    const struct timespec nap = {.tv_nsec = 50 * 1000};
    for (unsigned polls = 0; !atomic_load_explicit(&wait->done, memory_order_acquire); ++polls) {
        opal_progress();
        if (polls >= FIRST_POLLS) {
            nanosleep(&nap, NULL);
        }
    }
    pthread_join(thread, NULL);
    return wait->status;
}

static int progressing_fence(opal_list_t *processes, int collect)
{
    return progress_during(&(wait_t) {.call = fence, .list = processes, .collect = collect});
}

static int progressing_connect(opal_list_t *processes)
{
    return progress_during(&(wait_t) {.call = connect_to, .list = processes});
}

static int progressing_disconnect(opal_list_t *processes)
{
    return progress_during(&(wait_t) {.call = disconnect_from, .list = processes});
}

static int progressing_lookup(opal_list_t *data, opal_list_t *directives)
{
    return progress_during(&(wait_t) {.call = look_up, .list = data, .directives = directives});
}

void mca_common_velo_waits_progress(void)
{
    manager = opal_pmix;
    opal_pmix.fence = NULL != manager.fence ? progressing_fence : NULL;
    opal_pmix.connect = NULL != manager.connect ? progressing_connect : NULL;
    opal_pmix.disconnect = NULL != manager.disconnect ? progressing_disconnect : NULL;
    opal_pmix.lookup = NULL != manager.lookup ? progressing_lookup : NULL;
}

void mca_common_velo_waits_end(void)
{
    opal_pmix.fence = manager.fence;
    opal_pmix.connect = manager.connect;
    opal_pmix.disconnect = manager.disconnect;
    opal_pmix.lookup = manager.lookup;
}

#else

void mca_common_velo_waits_progress(void)
{
}

void mca_common_velo_waits_end(void)
{
}

#endif
