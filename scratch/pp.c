#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int c,char**v){MPI_Init(&c,&v);int r,n;MPI_Comm_rank(MPI_COMM_WORLD,&r);MPI_Comm_size(MPI_COMM_WORLD,&n);char h[64];gethostname(h,64);
if(c>1){printf("%d/%d on %s\n",r,n,h);}
int peer=n/2; size_t max=4<<20; char*b=malloc(max);memset(b,1,max);
for(size_t s=8;s<=max;s*=4){int it=s<65536?1000:s<1000000?100:20;double t=0;for(int i=-it/10;i<it;i++){if(i==0)t=MPI_Wtime();
 if(r==0){MPI_Send(b,s,MPI_CHAR,peer,1,MPI_COMM_WORLD);MPI_Recv(b,s,MPI_CHAR,peer,1,MPI_COMM_WORLD,MPI_STATUS_IGNORE);}
 else if(r==peer){MPI_Recv(b,s,MPI_CHAR,0,1,MPI_COMM_WORLD,MPI_STATUS_IGNORE);MPI_Send(b,s,MPI_CHAR,0,1,MPI_COMM_WORLD);}}
 if(r==0)printf("%zu %.2f us\n",s,(MPI_Wtime()-t)/it/2*1e6);}
MPI_Finalize();}
