/* What the files of the shared glue say to each other. */
#ifndef MCA_COMMON_VELO_INTERNAL_H
#define MCA_COMMON_VELO_INTERNAL_H

#include "common_velo.h"
#include "common_velo_compat.h"

typedef struct mca_common_velo_t {
    velo_config config;            /* the parameters; those with enumerators: mca_common_velo_config */
    velo_engine *engine;           /* NULL: not open */
    bool closed;                   /* it was open and is not any more */
    size_t eager_limit;            /* while it is open */
    mca_common_velo_user_t *users; /* until it is closed, the first one last */
    velo_performer *performer;     /* NULL: not open */
} mca_common_velo_t;
extern mca_common_velo_t mca_common_velo;

/* Engine parameters and counters are named after the BTL, whichever component is in use. */
extern const mca_base_component_t mca_common_velo_names;

/* Key under which a process publishes its address. No version in it: peers of another version get an error message. */
#define MCA_COMMON_VELO_ADDRESS_KEY "btl.velo.address"

/* job */
/* Configuration of an engine of this process: parameters, job, logging. False: out of memory. */
typedef struct mca_common_velo_job_t {
    velo_config config;
    uint64_t *memory[3]; /* that the configuration points to */
} mca_common_velo_job_t;
bool mca_common_velo_describe_job(mca_common_velo_job_t *job, bool threads);
void mca_common_velo_forget_job(mca_common_velo_job_t *job);

/* engine */
/* Pairs performer and engine for sleeping, if both are open; either may open first. */
void mca_common_velo_sleep_together(void);
/* To the reason why the performer cannot be opened, or the engine beside it: that it is one of two mailboxes. */
void mca_common_velo_tell_of_both(velo_status status, char *error, size_t error_bytes);

/* parameters */
/* They are there, whether the BTL has registered them or not; false if they cannot be. */
bool mca_common_velo_need_parameters(void);
void mca_common_velo_leave_parameters(void);
/* The value of a parameter that every BTL has, whoever keeps it. */
size_t mca_common_velo_of_base(const char *key);
/* The first wrong value among those that the engine does not check, once all are final; NULL: none. */
const char *mca_common_velo_wrong_parameter(void);
/* Warns of unknown names of Velo's parameters in the environment and in files. */
void mca_common_velo_warn_of_names(void);

/* pvars */
int mca_common_velo_register_pvars(void);

/* waits */
/* While an engine is open, Open MPI's waits inside its process manager make progress, where a component can see to that. */
void mca_common_velo_waits_progress(void);
void mca_common_velo_waits_end(void);

#endif
