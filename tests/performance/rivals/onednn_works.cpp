// A matmul or a convolution of oneDNN as three C functions, for onednn_works.py.
//   g++ -std=c++20 -O2 -fPIC -shared -I$ENV/include onednn_works.cpp -o onednn_works.so -L$ENV/lib -ldnnl -Wl,-rpath,$ENV/lib
#include <string>
#include <unordered_map>

#include <dnnl.hpp>

namespace {

using namespace dnnl;
using Tag = memory::format_tag;

std::string reason;

struct Made {
    engine cpu{engine::kind::cpu, 0};
    stream queue{cpu};
    primitive what;
    std::unordered_map<int, memory> arguments;
    std::string implementation;

    memory given(const memory::desc &desc, void *data) { return memory(desc, cpu, data); }

    /// Weights in the layout that oneDNN prefers.
    memory arranged(const memory::desc &from, const memory::desc &to, void *data) {
        memory plain = given(from, data);
        if (from == to) return plain;
        memory made(to, cpu);
        reorder(plain, made).execute(queue, plain, made);
        queue.wait();
        return made;
    }
};

memory::data_type type_of(int code) { return static_cast<memory::data_type>(code); }

} // namespace

/// Types are values of dnnl_data_type_t. `arrange`: oneDNN chooses the layout of b, which is then arranged once.
extern "C" void *onednn_matmul(long m, long n, long k, int operand, int result, int arrange, void *a, void *b, void *c) try {
    auto made = new Made;
    const memory::desc x({m, k}, type_of(operand), Tag::ab), w({k, n}, type_of(operand), Tag::ab), y({m, n}, type_of(result), Tag::ab);
    const memory::desc wanted({k, n}, type_of(operand), arrange ? Tag::any : Tag::ab);
    const matmul::primitive_desc desc(made->cpu, x, wanted, y);
    made->what = matmul(desc);
    made->implementation = desc.impl_info_str();
    made->arguments = {{DNNL_ARG_SRC, made->given(x, a)},
                       {DNNL_ARG_WEIGHTS, made->arranged(w, desc.weights_desc(), b)},
                       {DNNL_ARG_DST, made->given(y, c)}};
    return made;
} catch (const error &e) {
    reason = e.what();
    return nullptr;
}

/// Images are [batch, size, size, features], the kernel is [window, window, features, outputs] and keeps the size of the images.
extern "C" void *onednn_convolution(long batch, long size, long features, long outputs, long window, int type, void *x, void *w,
                                    void *y) try {
    auto made = new Made;
    const long pad = window / 2;
    const memory::desc images({batch, features, size, size}, type_of(type), Tag::nhwc),
        results({batch, outputs, size, size}, type_of(type), Tag::nhwc);
    const memory::desc plain({outputs, features, window, window}, type_of(type), Tag::hwio),
        any({outputs, features, window, window}, type_of(type), Tag::any);
    const convolution_forward::primitive_desc desc(made->cpu, prop_kind::forward_inference, algorithm::convolution_direct, images, any,
                                                   results, {1, 1}, {pad, pad}, {pad, pad});
    made->what = convolution_forward(desc);
    made->implementation = desc.impl_info_str();
    made->arguments = {{DNNL_ARG_SRC, made->given(images, x)},
                       {DNNL_ARG_WEIGHTS, made->arranged(plain, desc.weights_desc(), w)},
                       {DNNL_ARG_DST, made->given(results, y)}};
    return made;
} catch (const error &e) {
    reason = e.what();
    return nullptr;
}

extern "C" const char *onednn_reason() { return reason.c_str(); }

extern "C" const char *onednn_implementation(void *made) { return static_cast<Made *>(made)->implementation.c_str(); }

extern "C" const char *onednn_version() {
    static const std::string text =
        std::to_string(version()->major) + "." + std::to_string(version()->minor) + "." + std::to_string(version()->patch);
    return text.c_str();
}

extern "C" void onednn_run(void *given) {
    auto made = static_cast<Made *>(given);
    made->what.execute(made->queue, made->arguments);
    made->queue.wait();
}

extern "C" void onednn_free(void *made) { delete static_cast<Made *>(made); }
