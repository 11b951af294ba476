// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Objects with virtual functions in regions of all devices: created in a region of the device that
// uses them ("region"), or on the host ("host"), which only works in the host's own process.
#include <cstdio>
#include <cstring>
#include <new>
#include <omp.h>

#pragma omp begin declare target
class shape {
public:
    [[nodiscard]] virtual double area() const = 0;
    shape() = default;
    shape(const shape &) = delete;
    shape &operator=(const shape &) = delete;

protected:
    ~shape() = default;
};

class square final : public shape {
public:
    explicit square(double side) : side_(side) {}
    [[nodiscard]] double area() const override { return side_ * side_; }

private:
    double side_;
};

class right_triangle final : public shape {
public:
    right_triangle(double a, double b) : a_(a), b_(b) {}
    [[nodiscard]] double area() const override { return a_ * b_ / 2; }

private:
    double a_;
    double b_;
};
#pragma omp end declare target

namespace {

constexpr int count = 100;
struct alignas(16) slot {
    unsigned char
        bytes[sizeof(right_triangle) > sizeof(square) ? sizeof(right_triangle) : sizeof(square)];
};

double expected() {
    double sum = 0;
    for (int i = 0; i < count; ++i) {
        sum += i % 2 == 0 ? i * i : i * 3 / 2.0;
    }
    return sum;
}

/// The sum of the areas of objects that live in the device's memory, from a second region on.
double sum_of_created_in_region(int device) {
    static slot objects[count];
    double sum = 0;
#pragma omp target data map(alloc : objects[0 : count]) device(device)
    {
#pragma omp target teams distribute parallel for device(device)
        for (int i = 0; i < count; ++i) {
            if (i % 2 == 0) {
                new (&objects[i]) square(i);
            } else {
                new (&objects[i]) right_triangle(i, 3);
            }
        }
#pragma omp target teams distribute parallel for reduction(+ : sum) map(tofrom : sum) device(device)
        for (int i = 0; i < count; ++i) {
            sum += reinterpret_cast<const shape *>(&objects[i])->area();
        }
    }
    return sum;
}

double area_of_created_on_host(int device) {
    slot memory;
    square *const made = new (&memory) square(3);
    double area = 0;
#pragma omp target map(to : memory) map(from : area) device(device)
    {
        const shape *here = reinterpret_cast<const shape *>(&memory);
        // The compiler must not know the class.
        asm volatile("" : "+r"(here));
        area = here->area();
    }
    return made->area() == area ? area : -1;
}

} // namespace

int main(int num_words, char **words) {
    bool const on_host = num_words > 1 && std::strcmp(words[1], "host") == 0;
    for (int device = 0; device < omp_get_num_devices(); ++device) {
        double const found =
            on_host ? area_of_created_on_host(device) : sum_of_created_in_region(device);
        if (found != (on_host ? 9 : expected())) {
            std::printf("device %d: %f\n", device, found);
            return 1;
        }
    }
    std::printf("virtuals: ok\n");
    return 0;
}
