/* The neighbours of a process in the topology of its communicator, in the order that MPI gives them. */
#include "coll_velo.h"

#include "ompi/mca/topo/base/base.h"
#include "ompi/mca/topo/topo.h"

void mca_coll_velo_neighbours(ompi_communicator_t *comm, uint32_t *sources, uint32_t *targets)
{
    const int rank = ompi_comm_rank(comm);
    if (OMPI_COMM_IS_CART(comm)) {
        *sources = *targets = 2 * (uint32_t) comm->c_topo->mtc.cart->ndims;
    } else if (OMPI_COMM_IS_GRAPH(comm)) {
        const int *end = comm->c_topo->mtc.graph->index + rank;
        *sources = *targets = (uint32_t) (0 == rank ? *end : *end - end[-1]);
    } else {
        *sources = (uint32_t) comm->c_topo->mtc.dist_graph->indegree;
        *targets = (uint32_t) comm->c_topo->mtc.dist_graph->outdegree;
    }
}

/* Along each dimension the lower and the upper neighbour, which may be the same process. Messages upward and
 * downward have different tags, so each arrives at its own side. */
static int along_dimensions(ompi_communicator_t *comm, uint32_t i, bool to_target, uint32_t *tag)
{
    int below, above;
    *tag = i % 2 ^ (uint32_t) to_target;
    mca_topo_base_cart_shift(comm, (int) (i / 2), 1, &below, &above);
    return 0 == i % 2 ? below : above;
}

static int neighbour(ompi_communicator_t *comm, uint32_t i, bool is_target, uint32_t *tag)
{
    const int rank = ompi_comm_rank(comm);
    if (OMPI_COMM_IS_CART(comm)) {
        return along_dimensions(comm, i, is_target, tag);
    }
    *tag = 0;
    if (OMPI_COMM_IS_GRAPH(comm)) {
        const mca_topo_base_comm_graph_t *graph = comm->c_topo->mtc.graph;
        return graph->edges[(0 == rank ? 0 : graph->index[rank - 1]) + (int) i];
    }
    return (is_target ? comm->c_topo->mtc.dist_graph->out : comm->c_topo->mtc.dist_graph->in)[i];
}

void mca_coll_velo_address(ompi_communicator_t *comm, mca_coll_velo_buffer_t *buffer, bool to_targets)
{
    for (uint32_t i = 0; i < buffer->count; ++i) {
        const int peer = neighbour(comm, i, to_targets, &buffer->blocks[i].tag);
        buffer->blocks[i].peer = (uint32_t) (MPI_PROC_NULL == peer ? ompi_comm_rank(comm) : peer);
        if (MPI_PROC_NULL == peer) {
            buffer->parts[i].count = 0;
        }
    }
}
