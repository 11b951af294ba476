// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loading and calling a BLAS. The functions' types are those of the vendors' documentation; each
// library is known by the symbol that creates its handle.
#define _GNU_SOURCE // dladdr
#include "common/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Row-major products by column-major libraries: c = a b is c' = b' a' of the transposed matrices,
// which is what those libraries see in row-major arrays. So a and b change places.
typedef int gpu_gemm(void *handle, int op_b, int op_a, int columns, int rows, int depth,
                     const void *alpha, const void *b, int b_stride, const void *a, int a_stride,
                     const void *beta, void *c, int c_stride);
typedef void cblas_dgemm_t(int order, int op_a, int op_b, int rows, int columns, int depth,
                           double alpha, const double *a, int a_stride, const double *b,
                           int b_stride, double beta, double *c, int c_stride);
typedef void cblas_sgemm_t(int order, int op_a, int op_b, int rows, int columns, int depth,
                           float alpha, const float *a, int a_stride, const float *b, int b_stride,
                           float beta, float *c, int c_stride);
enum { CBLAS_ROW_MAJOR = 101, CBLAS_PLAIN = 111, CBLAS_TRANSPOSED = 112 };

// The driver's or runtime's functions for streams. CUDA's and HIP's have the same arguments.
enum { GET_ATTRIBUTE, RETAIN_CONTEXT, SET_CONTEXT, CREATE_STREAM, DESTROY_STREAM, QUERY, WAIT };
enum { STREAM_CALLS = WAIT + 1 };
enum { ATTRIBUTE_DEVICE_ORDINAL = 9, STREAM_NON_BLOCKING = 1, NOT_READY = 600 };
typedef int get_attribute_t(void *value, int attribute, uintptr_t pointer);
typedef int retain_context_t(void **context, int device);
typedef int create_stream_t(void **stream, unsigned flags);
typedef int stream_call_t(void *stream); // those of one handle: of a stream, of a context

typedef struct gpu_library {
    const char *name;
    const char *const *files;                                  // for "auto"
    const char *create, *destroy, *set_stream, *dgemm, *sgemm; // of the BLAS
    int plain, transposed;                                     // its constants
    const char *const *runtime_files;
    const char *stream_calls[STREAM_CALLS];
} gpu_library;

static const char *const cuda_files[] = {"libcuda.so.1", NULL};
static const char *const hip_files[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "libamdhip64.so", NULL};
static const char *const cublas_files[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                           NULL};
static const char *const rocblas_files[] = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3",
                                            "librocblas.so.0", NULL};
static const char *const hipblas_files[] = {"libhipblas.so.3", "libhipblas.so.2", "libhipblas.so.1",
                                            "libhipblas.so.0", NULL};

#define HIP_CALLS                                                                                  \
    {"hipPointerGetAttribute",   "hipDevicePrimaryCtxRetain", "hipCtxSetCurrent",                  \
     "hipStreamCreateWithFlags", "hipStreamDestroy",          "hipStreamQuery",                    \
     "hipStreamSynchronize"}

static const gpu_library gpu_libraries[] = {
    {"cuBLAS",
     cublas_files,
     "cublasCreate_v2",
     "cublasDestroy_v2",
     "cublasSetStream_v2",
     "cublasDgemm_v2",
     "cublasSgemm_v2",
     0,
     1,
     cuda_files,
     {"cuPointerGetAttribute", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuStreamCreate",
      "cuStreamDestroy_v2", "cuStreamQuery", "cuStreamSynchronize"}},
    {"rocBLAS", rocblas_files, "rocblas_create_handle", "rocblas_destroy_handle",
     "rocblas_set_stream", "rocblas_dgemm", "rocblas_sgemm", 111, 112, hip_files, HIP_CALLS},
    {"hipBLAS", hipblas_files, "hipblasCreate", "hipblasDestroy", "hipblasSetStream",
     "hipblasDgemm", "hipblasSgemm", 111, 112, hip_files, HIP_CALLS},
};
enum { GPU_LIBRARIES = sizeof gpu_libraries / sizeof gpu_libraries[0] };

static const char *const host_files[] = {"libopenblas.so.0", "libblis.so.4", "libblis.so.3", NULL};

typedef void (*function)(void);

struct blas {
    void *library;
    char name[300];
    cblas_dgemm_t *host_dgemm; // NULL: a library for GPUs
    cblas_sgemm_t *host_sgemm;
    const gpu_library *gpu;
    void *runtime;
    function stream_calls[STREAM_CALLS];
    gpu_gemm *gpu_dgemm, *gpu_sgemm;
    stream_call_t *destroy;
    void *context, *handle, *stream;
};

static function lookup(void *library, const char *symbol) {
    function found = NULL;
    void *const address = dlsym(library, symbol);
    memcpy(&found, &address, sizeof found);
    return found;
}

int blas_required(const char *choice) {
    return strcmp(choice, "auto") != 0 && strcmp(choice, "off") != 0;
}

const char *blas_name(const blas *b) { return b->name; }

// Returns 0 with the reason if the library lacks a symbol.
static int need(function found, const char *file, const char *symbol, char *reason, size_t size) {
    if (found == NULL) {
        snprintf(reason, size, "no function %s in %s", symbol, file);
    }
    return found != NULL;
}

// Sets the name from the file in which `symbol` was found: "OpenBLAS 0.3.21 (/usr/lib/...)".
static void set_name(blas *b, const char *what, const char *symbol, const char *more) {
    Dl_info info = {0};
    void *const address = dlsym(b->library, symbol);
    const int known = address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL;
    snprintf(b->name, sizeof b->name, "%s (%s)%s", what, known ? info.dli_fname : "file unknown",
             more);
}

// Libraries for processors compute with their own threads: as many as OpenMP has.
static void set_host_threads(blas *b) {
    static const char *const setters[] = {"openblas_set_num_threads", "MKL_Set_Num_Threads"};
    const int threads = omp_get_max_threads();
    for (size_t i = 0; i < sizeof setters / sizeof setters[0]; ++i) {
        void (*const set)(int) = (void (*)(int))lookup(b->library, setters[i]);
        if (set != NULL) {
            set(threads);
        }
    }
    // BLIS has its own type for integers.
    void (*const set_long)(int64_t) =
        (void (*)(int64_t))lookup(b->library, "bli_thread_set_num_threads");
    if (set_long != NULL) {
        set_long(threads);
    }
}

static int open_host(blas *b, const char *file, char *reason, size_t size) {
    b->host_dgemm = (cblas_dgemm_t *)lookup(b->library, "cblas_dgemm");
    b->host_sgemm = (cblas_sgemm_t *)lookup(b->library, "cblas_sgemm");
    if (!need((function)b->host_dgemm, file, "cblas_dgemm", reason, size) ||
        !need((function)b->host_sgemm, file, "cblas_sgemm", reason, size)) {
        return 0;
    }
    set_host_threads(b);
    const char *(*const config)(void) =
        (const char *(*)(void))lookup(b->library, "openblas_get_config");
    char what[64] = "CBLAS";
    if (config != NULL) { // "OpenBLAS 0.3.21 NO_LAPACKE ..."
        const char *const text = config();
        const char *const version = strchr(text, ' ');
        const size_t length = version == NULL
                                  ? strlen(text)
                                  : 1 + strcspn(version + 1, " ") + (size_t)(version - text);
        snprintf(what, sizeof what, "%.*s", (int)length, text);
    }
    char threads[40];
    snprintf(threads, sizeof threads, ", %d threads", omp_get_max_threads());
    set_name(b, what, "cblas_dgemm", threads);
    return 1;
}

// The stream functions, from the BLAS and what it depends on or from the runtime's own library.
static int find_stream_calls(blas *b, const char *file, char *reason, size_t size) {
    for (const char *const *name = b->gpu->runtime_files; *name != NULL && b->runtime == NULL;
         ++name) {
        b->runtime = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    }
    for (int i = 0; i < STREAM_CALLS; ++i) {
        const char *const symbol = b->gpu->stream_calls[i];
        b->stream_calls[i] = lookup(b->library, symbol);
        if (b->stream_calls[i] == NULL && b->runtime != NULL) {
            b->stream_calls[i] = lookup(b->runtime, symbol);
        }
        if (b->stream_calls[i] == NULL) {
            snprintf(reason, size, "%s of %s needs %s with the function %s", b->gpu->name, file,
                     b->gpu->runtime_files[0], symbol);
            return 0;
        }
    }
    return 1;
}

static int find_gpu_functions(blas *b, const char *file, char *reason, size_t size) {
    for (int i = 0; i < GPU_LIBRARIES && b->gpu == NULL; ++i) {
        b->gpu = dlsym(b->library, gpu_libraries[i].create) != NULL ? &gpu_libraries[i] : NULL;
    }
    if (b->gpu == NULL) {
        snprintf(reason, size, "not a BLAS for GPUs: none of %s, %s and %s in %s",
                 gpu_libraries[0].create, gpu_libraries[1].create, gpu_libraries[2].create, file);
        return 0;
    }
    b->gpu_dgemm = (gpu_gemm *)lookup(b->library, b->gpu->dgemm);
    b->gpu_sgemm = (gpu_gemm *)lookup(b->library, b->gpu->sgemm);
    b->destroy = (stream_call_t *)lookup(b->library, b->gpu->destroy);
    return need((function)b->gpu_dgemm, file, b->gpu->dgemm, reason, size) &&
           need((function)b->gpu_sgemm, file, b->gpu->sgemm, reason, size) &&
           need((function)b->destroy, file, b->gpu->destroy, reason, size) &&
           need(lookup(b->library, b->gpu->set_stream), file, b->gpu->set_stream, reason, size) &&
           find_stream_calls(b, file, reason, size);
}

static int call_stream(const blas *b, int which, void *stream) {
    return ((stream_call_t *)b->stream_calls[which])(stream);
}

// Makes the GPU that holds `memory` current by its primary context, which libomptarget uses, too.
static int set_gpu(blas *b, const void *memory) {
    int device = 0;
    const int unknown = ((get_attribute_t *)b->stream_calls[GET_ATTRIBUTE])(
        &device, ATTRIBUTE_DEVICE_ORDINAL, (uintptr_t)memory);
    // HIP knows only memory that it has allocated itself: of other memory, its first device.
    if (unknown != 0 && b->gpu->runtime_files == cuda_files) {
        return unknown;
    }
    const int error = ((retain_context_t *)b->stream_calls[RETAIN_CONTEXT])(
        &b->context, unknown != 0 ? 0 : device);
    return error != 0 ? error : call_stream(b, SET_CONTEXT, b->context);
}

// A handle with a stream of its own, which does not wait for other streams: target regions and
// transfers have finished when they return, and later ones begin after blas_wait.
static int create_handle(blas *b) {
    typedef int create_t(void **handle);
    typedef int set_stream_t(void *handle, void *stream);
    int error = ((create_t *)lookup(b->library, b->gpu->create))(&b->handle);
    if (error == 0) {
        error =
            ((create_stream_t *)b->stream_calls[CREATE_STREAM])(&b->stream, STREAM_NON_BLOCKING);
    }
    if (error == 0) {
        error = ((set_stream_t *)lookup(b->library, b->gpu->set_stream))(b->handle, b->stream);
    }
    return error;
}

static int open_gpu(blas *b, const char *file, const void *memory, char *reason, size_t size) {
    if (!find_gpu_functions(b, file, reason, size)) {
        return 0;
    }
    const int gpu_error = set_gpu(b, memory);
    const int error = gpu_error == 0 ? create_handle(b) : gpu_error;
    if (error != 0) {
        snprintf(reason, size, "%s of %s: error %d of %s", b->gpu->name, file, error,
                 gpu_error != 0 ? "the driver when its device is selected"
                                : "the call that creates a handle or its stream");
        return 0;
    }
    set_name(b, b->gpu->name, b->gpu->create, "");
    return 1;
}

static blas *open_file(const char *file, const void *gpu, char *reason, size_t size) {
    blas *const b = calloc(1, sizeof *b);
    if (b == NULL) {
        snprintf(reason, size, "no memory");
        return NULL;
    }
    b->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (b->library == NULL) {
        snprintf(reason, size, "%s", dlerror());
    } else if (gpu != NULL ? open_gpu(b, file, gpu, reason, size)
                           : open_host(b, file, reason, size)) {
        return b;
    }
    blas_close(b);
    return NULL;
}

blas *blas_open(const char *choice, const void *gpu, char *reason, size_t reason_size) {
    reason[0] = '\0';
    if (strcmp(choice, "off") == 0) {
        return NULL;
    }
    if (blas_required(choice)) {
        return open_file(choice, gpu, reason, reason_size);
    }
    for (int i = 0; i < (gpu != NULL ? GPU_LIBRARIES : 1); ++i) {
        const char *const *file = gpu != NULL ? gpu_libraries[i].files : host_files;
        for (; *file != NULL; ++file) {
            char failure[300];
            blas *const b = open_file(*file, gpu, failure, sizeof failure);
            if (b != NULL) {
                reason[0] = '\0';
                return b;
            }
            // dlerror begins with the name of the file that is missing: this one, or one it needs.
            if (reason[0] == '\0' && strncmp(failure, *file, strlen(*file)) != 0) {
                snprintf(reason, reason_size, "%s", failure);
            }
        }
    }
    if (reason[0] == '\0') {
        snprintf(reason, reason_size, "the loader finds none of %s",
                 gpu != NULL ? "libcublas, librocblas, libhipblas" : "libopenblas, libblis");
    }
    return NULL;
}

void blas_close(blas *b) {
    if (b == NULL) {
        return;
    }
    if (b->handle != NULL) {
        call_stream(b, SET_CONTEXT, b->context);
        b->destroy(b->handle);
    }
    if (b->stream != NULL) {
        call_stream(b, DESTROY_STREAM, b->stream);
    }
    if (b->runtime != NULL) {
        dlclose(b->runtime);
    }
    // The library stays loaded: its threads may still run.
    free(b);
}

static int run_on_gpu(blas *b, const blas_product *p, gpu_gemm *gemm, const void *alpha,
                      const void *beta) {
    const int error = call_stream(b, SET_CONTEXT, b->context); // another library may have its own
    if (error != 0) {
        return error;
    }
    const int plain = b->gpu->plain;
    const int transposed = b->gpu->transposed;
    return gemm(b->handle, p->b.transposed ? transposed : plain,
                p->a.transposed ? transposed : plain, (int)p->columns, (int)p->rows, (int)p->depth,
                alpha, p->b.data, (int)p->b.stride, p->a.data, (int)p->a.stride, beta, p->c,
                (int)p->c_stride);
}

static int cblas_op(const blas_matrix *m) { return m->transposed ? CBLAS_TRANSPOSED : CBLAS_PLAIN; }

static int is_empty(const blas_product *p) { return p->rows == 0 || p->columns == 0; }

int blas_doubles(blas *b, const blas_product *p) {
    const double alpha = 1;
    const double beta = p->accumulate ? 1 : 0;
    if (is_empty(p)) {
        return 0;
    }
    if (b->gpu != NULL) {
        return run_on_gpu(b, p, b->gpu_dgemm, &alpha, &beta);
    }
    b->host_dgemm(CBLAS_ROW_MAJOR, cblas_op(&p->a), cblas_op(&p->b), (int)p->rows, (int)p->columns,
                  (int)p->depth, alpha, p->a.data, (int)p->a.stride, p->b.data, (int)p->b.stride,
                  beta, p->c, (int)p->c_stride);
    return 0;
}

int blas_floats(blas *b, const blas_product *p) {
    const float alpha = 1;
    const float beta = p->accumulate ? 1 : 0;
    if (is_empty(p)) {
        return 0;
    }
    if (b->gpu != NULL) {
        return run_on_gpu(b, p, b->gpu_sgemm, &alpha, &beta);
    }
    b->host_sgemm(CBLAS_ROW_MAJOR, cblas_op(&p->a), cblas_op(&p->b), (int)p->rows, (int)p->columns,
                  (int)p->depth, alpha, p->a.data, (int)p->a.stride, p->b.data, (int)p->b.stride,
                  beta, p->c, (int)p->c_stride);
    return 0;
}

int blas_wait(blas *b, void (*poll)(void)) {
    if (b->stream == NULL) {
        return 0;
    }
    int state = NOT_READY;
    while (poll != NULL && state == NOT_READY) {
        poll();
        state = call_stream(b, QUERY, b->stream);
    }
    return poll != NULL ? state : call_stream(b, WAIT, b->stream);
}
