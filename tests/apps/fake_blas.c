// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stand-ins for BLAS libraries, one for each FAKE_* that is defined. They compute in host memory by
// the definition of the product. Those for GPUs have the runtime's functions for streams as well;
// they compute when the stream is queried the second time, or waited for, and refuse calls without
// the context of the device that holds the memory.
#include <stddef.h>
#include <stdint.h>

#if defined(FAKE_CBLAS) || defined(FAKE_CBLAS_LACKING)
enum { TRANSPOSED = 112 };

void cblas_dgemm(int order, int op_a, int op_b, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc) {
    for (int i = 0; order == 101 && i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int d = 0; d < k; ++d) {
                sum += a[op_a == TRANSPOSED ? d * lda + i : i * lda + d] *
                       b[op_b == TRANSPOSED ? j * ldb + d : d * ldb + j];
            }
            c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
        }
    }
}
#endif

#ifdef FAKE_CBLAS
void cblas_sgemm(int order, int op_a, int op_b, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    for (int i = 0; order == 101 && i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            float sum = 0;
            for (int d = 0; d < k; ++d) {
                sum += a[op_a == TRANSPOSED ? d * lda + i : i * lda + d] *
                       b[op_b == TRANSPOSED ? j * ldb + d : d * ldb + j];
            }
            c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
        }
    }
}
#endif

#ifdef FAKE_CUBLAS
#define NAME(cublas, rocblas, hipblas) cublas
enum { PLAIN = 0, TRANSPOSED = 1, DEVICE = 3 };
#elif defined(FAKE_ROCBLAS)
#define NAME(cublas, rocblas, hipblas) rocblas
enum { PLAIN = 111, TRANSPOSED = 112, DEVICE = 0 };
#elif defined(FAKE_HIPBLAS)
#define NAME(cublas, rocblas, hipblas) hipblas
enum { PLAIN = 111, TRANSPOSED = 112, DEVICE = 2 };
#endif

#ifdef NAME
enum { BAD_CALL = 77, UNKNOWN_MEMORY = 1, NOT_READY = 600, MOST = 16 };

typedef struct product {
    int op_a, op_b, m, n, k, is_double;
    const void *a, *b;
    void *c;
    double alpha, beta;
    int lda, ldb, ldc;
} product;

static int context, handle, stream;
static void *current;
static void *stream_of_handle;
static product queue[MOST];
static int queued, queries;

// To be called by tests.
int fake_fail_create;
int fake_alive;

#define CUDA_OR_HIP(cuda, hip) NAME(cuda, hip, hip)

int CUDA_OR_HIP(cuPointerGetAttribute, hipPointerGetAttribute)(void *value, int attribute,
                                                               uintptr_t pointer) {
    if (attribute != 9 || pointer == 0) {
        return BAD_CALL;
    }
    *(int *)value = DEVICE;
    return NAME(0, UNKNOWN_MEMORY, 0);
}

int CUDA_OR_HIP(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(void **made, int device) {
    *made = &context;
    return device == DEVICE ? 0 : BAD_CALL;
}

int CUDA_OR_HIP(cuCtxSetCurrent, hipCtxSetCurrent)(void *wanted) {
    current = wanted;
    return 0;
}

int CUDA_OR_HIP(cuStreamCreate, hipStreamCreateWithFlags)(void **made, unsigned flags) {
    *made = &stream;
    ++fake_alive;
    return flags == 1 && current == &context ? 0 : BAD_CALL;
}

int CUDA_OR_HIP(cuStreamDestroy_v2, hipStreamDestroy)(void *which) {
    --fake_alive;
    return which == &stream ? 0 : BAD_CALL;
}

static double element(const product *p, const void *x, int index) {
    return p->is_double ? ((const double *)x)[index] : (double)((const float *)x)[index];
}

// Column-major.
static void compute(const product *p) {
    for (int j = 0; j < p->n; ++j) {
        for (int i = 0; i < p->m; ++i) {
            double sum = 0;
            for (int d = 0; d < p->k; ++d) {
                sum += element(p, p->a, p->op_a == TRANSPOSED ? i * p->lda + d : d * p->lda + i) *
                       element(p, p->b, p->op_b == TRANSPOSED ? d * p->ldb + j : j * p->ldb + d);
            }
            const int at = j * p->ldc + i;
            sum = p->alpha * sum + (p->beta == 0 ? 0 : p->beta * element(p, p->c, at));
            if (p->is_double) {
                ((double *)p->c)[at] = sum;
            } else {
                ((float *)p->c)[at] = (float)sum;
            }
        }
    }
}

int CUDA_OR_HIP(cuStreamSynchronize, hipStreamSynchronize)(void *which) {
    for (int i = 0; i < queued; ++i) {
        compute(&queue[i]);
    }
    queued = queries = 0;
    return which == &stream ? 0 : BAD_CALL;
}

int CUDA_OR_HIP(cuStreamQuery, hipStreamQuery)(void *which) {
    return ++queries < 2 ? NOT_READY
                         : CUDA_OR_HIP(cuStreamSynchronize, hipStreamSynchronize)(which);
}

int NAME(cublasCreate_v2, rocblas_create_handle, hipblasCreate)(void **made) {
    if (fake_fail_create != 0) {
        return fake_fail_create;
    }
    *made = &handle;
    ++fake_alive;
    return current == &context ? 0 : BAD_CALL;
}

int NAME(cublasDestroy_v2, rocblas_destroy_handle, hipblasDestroy)(void *which) {
    --fake_alive;
    return which == &handle ? 0 : BAD_CALL;
}

int NAME(cublasSetStream_v2, rocblas_set_stream, hipblasSetStream)(void *which, void *wanted) {
    stream_of_handle = wanted;
    return which == &handle ? 0 : BAD_CALL;
}

static int enqueue(void *which, product p) {
    const int ops_known =
        (p.op_a == PLAIN || p.op_a == TRANSPOSED) && (p.op_b == PLAIN || p.op_b == TRANSPOSED);
    if (which != &handle || stream_of_handle != &stream || current != &context || queued == MOST ||
        !ops_known) {
        return BAD_CALL;
    }
    queue[queued++] = p;
    current = NULL; // as another library may do
    return 0;
}

int NAME(cublasDgemm_v2, rocblas_dgemm, hipblasDgemm)(void *which, int op_a, int op_b, int m, int n,
                                                      int k, const double *alpha, const double *a,
                                                      int lda, const double *b, int ldb,
                                                      const double *beta, double *c, int ldc) {
    return enqueue(which, (product){op_a, op_b, m, n, k, 1, a, b, c, *alpha, *beta, lda, ldb, ldc});
}

int NAME(cublasSgemm_v2, rocblas_sgemm, hipblasSgemm)(void *which, int op_a, int op_b, int m, int n,
                                                      int k, const float *alpha, const float *a,
                                                      int lda, const float *b, int ldb,
                                                      const float *beta, float *c, int ldc) {
    return enqueue(which, (product){op_a, op_b, m, n, k, 0, a, b, c, (double)*alpha, (double)*beta,
                                    lda, ldb, ldc});
}
#endif
