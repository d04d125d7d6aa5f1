/* One message of any number of bytes from rank 1 to rank 0, as one element of a large type.
 * large BYTES */
#include "common.h"

static MPI_Datatype bytes_type(size_t bytes) {
    static const size_t kBlock = 1 << 20;
    MPI_Datatype block, body, type;
    MPI_Type_contiguous((int)kBlock, MPI_BYTE, &block);
    MPI_Type_contiguous((int)(bytes / kBlock), block, &body);
    int lengths[] = {1, (int)(bytes % kBlock)};
    MPI_Aint offsets[] = {0, (MPI_Aint)(bytes / kBlock * kBlock)};
    MPI_Datatype parts[] = {body, MPI_BYTE};
    MPI_Type_create_struct(2, lengths, offsets, parts, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&block);
    MPI_Type_free(&body);
    return type;
}

int main(int argc, char** argv) {
    start(&argc, &argv);
    size_t bytes = (size_t)argument(argc, argv, 1, 1);
    MPI_Datatype type = bytes_type(bytes);
    unsigned char* data = allocate(bytes + 1);
    if (my_rank == 1) {
        pattern_fill(data, bytes, seed_of(1, bytes, 0));
        MPI_Send(data, 1, type, 0, 0, MPI_COMM_WORLD);
    } else if (my_rank == 0) {
        MPI_Status status;
        MPI_Count received;
        data[bytes] = 0x5a;
        MPI_Recv(data, 1, type, 1, 0, MPI_COMM_WORLD, &status);
        MPI_Get_elements_x(&status, MPI_BYTE, &received);
        pattern_check(data, bytes, seed_of(1, bytes, 0), "large");
        CHECK(data[bytes] == 0x5a, "the byte behind the message was overwritten");
        printf("received=%lld\n", (long long)received);
    }
    free(data);
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
