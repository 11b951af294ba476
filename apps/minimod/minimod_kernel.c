// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "minimod/minimod_kernel.h"

#include "minimod/minimod_tile.h"

#include <omp.h>
#include <string.h>

void minimod_step(const grid *g, const medium *m, float *previous, float *now, int x_begin,
                  int x_end, row_form form) {
    if (x_end <= x_begin) {
        return;
    }
    const int rows = block_rows(g, omp_get_max_threads());
    const int blocks = divide_up(g->ny, rows);
    const int row_points = divide_up(g->nz, LINE) * LINE;
    const int points = block_points(g, form);
#pragma omp parallel
    {
        const unsigned saved = flush_denormals();
#pragma omp for schedule(static) nowait
        for (int block = 0; block < blocks; ++block) {
            const int y = block * rows;
            const int y_end = smaller(y + rows, g->ny);
            for (int x = x_begin; x < x_end; x += X_BLOCK) {
                for (int z = 0; z < row_points; z += points) {
                    step_block(g, m, previous, now, x, smaller(x + X_BLOCK, x_end), y, y_end, z,
                               smaller(points, row_points - z), form.fetch);
                }
            }
        }
        restore_denormals(saved);
    }
}

void minimod_clear(const grid *g, float *field) {
    memset(field, 0, g->lead * sizeof(float));
    float *const first = grid_plane(g, field, -HALO);
    const size_t row_bytes = g->pitch * sizeof(float);
    const size_t planes = (size_t)g->max_nx + 2 * (size_t)HALO;
    const int rows = g->ny + HALO;
#pragma omp parallel for schedule(static)
    for (int y = 0; y < rows; ++y) {
        for (size_t x = 0; x < planes; ++x) {
            memset(first + x * g->plane + (size_t)y * g->pitch, 0, row_bytes);
        }
    }
    memset(first + planes * g->plane, 0, (g->count - g->lead - planes * g->plane) * sizeof(float));
}
