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

/* The engine's parameters and counters have the names of the BTL's, whichever component is there. */
extern const mca_base_component_t mca_common_velo_names;

/* What a process publishes its address under. Without a version: peers of another one are refused with a message. */
#define MCA_COMMON_VELO_ADDRESS_KEY "btl.velo.address"

/* engine */
/* What an engine of this process is opened with: the parameters, the job, how to speak to the user. False: no memory. */
typedef struct mca_common_velo_job_t {
    velo_config config;
    uint64_t *memory[3]; /* that the configuration points to */
} mca_common_velo_job_t;
bool mca_common_velo_describe_job(mca_common_velo_job_t *job, bool threads);
void mca_common_velo_forget_job(mca_common_velo_job_t *job);
/* The parameters are there, whether the BTL has registered them or not; false if they cannot be. */
bool mca_common_velo_need_parameters(void);
void mca_common_velo_leave_parameters(void);
/* They are there again where Open MPI has dropped them although somebody needs them. */
void mca_common_velo_keep_parameters(void);

/* performer */
/* The performer and the engine, if both are there, which may be opened in either order. */
void mca_common_velo_sleep_together(void);

/* parameters */
/* True if the values are there. */
bool mca_common_velo_registered(void);
/* Registers what the BTL registers, where it does not: the engine's, and those that every BTL has. */
int mca_common_velo_register_all(void);
void mca_common_velo_deregister(void);
/* The value of a parameter that every BTL has, whoever keeps it. */
size_t mca_common_velo_of_base(const char *key);
/* What is wrong with the values that are not the engine's to check, once all are final; NULL if nothing is. */
const char *mca_common_velo_wrong_parameter(void);
/* Warns of parameters of Velo's, in the environment and in files, that there are not. */
void mca_common_velo_warn_of_names(void);

/* pvars */
int mca_common_velo_register_pvars(void);

/* waits */
/* While an engine is open, Open MPI's waits inside its process manager make progress, where a component can see to that. */
void mca_common_velo_waits_progress(void);
void mca_common_velo_waits_end(void);

#endif
