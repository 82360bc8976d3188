// onednn_layers: times convolutions and matmuls of oneDNN for layers.py, with the weights in the layout that oneDNN prefers. Reads lines
//   conv SECONDS DTYPE b h w input_features features window stride [add] [relu]
//   dot SECONDS DTYPE m k n [add] [mul] [relu] [gelu] [silu]
// and answers with the least milliseconds of a call, or with "none" where oneDNN has no such primitive.
//   g++ -std=c++20 -O2 -I$ENV/include onednn_layers.cpp -o onednn_layers -L$ENV/lib -ldnnl -Wl,-rpath,$ENV/lib
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

namespace {

using namespace dnnl;
using Tag = memory::format_tag;

struct Line {
    std::string kind, dtype;
    double seconds = 0;
    std::vector<int64_t> numbers;
    std::vector<std::string> after; ///< the operators after the convolution or the matmul
};

Line parse(const std::string &text) {
    Line line;
    std::istringstream words(text);
    words >> line.kind >> line.seconds >> line.dtype;
    for (std::string word; words >> word;)
        std::isdigit(static_cast<unsigned char>(word[0])) ? line.numbers.push_back(std::stoll(word)) : line.after.push_back(word);
    return line;
}

class Layer {
public:
    explicit Layer(const Line &line) : type_(line.dtype == "bf16" ? memory::data_type::bf16 : memory::data_type::f32) {
        line.kind == "conv" ? make_convolution(line) : make_dot(line);
    }

    void run() {
        primitive_.execute(stream_, arguments_);
        stream_.wait();
    }

private:
    memory::desc desc(const memory::dims &dims, Tag tag) const { return {dims, type_, tag}; }

    void add(int id, const memory::desc &desc) {
        memory made(desc, engine_);
        std::memset(made.get_data_handle(), 0, desc.get_size()); // zeros take as long as other numbers
        arguments_.emplace(id, made);
    }

    primitive_attr attributes_of(const Line &line, const memory::desc &result) {
        static const std::map<std::string, algorithm> activations = {
            {"relu", algorithm::eltwise_relu}, {"gelu", algorithm::eltwise_gelu_erf}, {"silu", algorithm::eltwise_swish}};
        post_ops operators;
        for (const std::string &word : line.after) {
            const auto activation = activations.find(word);
            if (activation != activations.end()) {
                operators.append_eltwise(activation->second, 1, 0);
                continue;
            }
            operators.append_binary(word == "mul" ? algorithm::binary_mul : algorithm::binary_add, result);
            add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(operators.len() - 1) | DNNL_ARG_SRC_1, result);
        }
        primitive_attr attributes;
        attributes.set_post_ops(operators);
        return attributes;
    }

    void make_convolution(const Line &line) {
        const auto &n = line.numbers;
        const int64_t pad = n[5] / 2, height = (n[1] + 2 * pad - n[5]) / n[6] + 1, width = (n[2] + 2 * pad - n[5]) / n[6] + 1;
        const memory::desc x = desc({n[0], n[3], n[1], n[2]}, Tag::nhwc), w = desc({n[4], n[3], n[5], n[5]}, Tag::any),
                           bias = desc({n[4]}, Tag::a), y = desc({n[0], n[4], height, width}, Tag::nhwc);
        const convolution_forward::primitive_desc made(engine_, prop_kind::forward_inference, algorithm::convolution_direct, x, w, bias, y,
                                                       {n[6], n[6]}, {pad, pad}, {pad, pad}, attributes_of(line, y));
        finish(convolution_forward(made), x, made.weights_desc(), bias, y);
    }

    void make_dot(const Line &line) {
        const auto &n = line.numbers;
        const memory::desc x = desc({n[0], n[1]}, Tag::ab), w = desc({n[1], n[2]}, Tag::any), bias = desc({1, n[2]}, Tag::ab),
                           y = desc({n[0], n[2]}, Tag::ab);
        const matmul::primitive_desc made(engine_, x, w, bias, y, attributes_of(line, y));
        finish(matmul(made), x, made.weights_desc(), bias, y);
    }

    void finish(const primitive &made, const memory::desc &x, const memory::desc &w, const memory::desc &bias, const memory::desc &y) {
        primitive_ = made;
        add(DNNL_ARG_SRC, x);
        add(DNNL_ARG_WEIGHTS, w);
        add(DNNL_ARG_BIAS, bias);
        add(DNNL_ARG_DST, y);
    }

    memory::data_type type_;
    engine engine_{engine::kind::cpu, 0};
    stream stream_{engine_};
    primitive primitive_;
    std::unordered_map<int, memory> arguments_;
};

double milliseconds(Layer &layer, double seconds) {
    using Clock = std::chrono::steady_clock;
    for (int i = 0; i < 3; i++) layer.run();
    double least = 1e30;
    const Clock::time_point start = Clock::now();
    while (std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
        const Clock::time_point begin = Clock::now();
        layer.run();
        least = std::min(least, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
    }
    return least;
}

} // namespace

int main() {
    for (std::string text; std::getline(std::cin, text);) {
        try {
            const Line line = parse(text);
            Layer layer(line);
            std::printf("%.6f\n", milliseconds(layer, line.seconds));
        } catch (const error &) {
            std::puts("none");
        }
        std::fflush(stdout);
    }
}
