#include "tool/page.h"
#include "emit/files.h"
#include "expr/error.h"
#include <map>
#include <nlohmann/json.hpp>

namespace scalide {

namespace {

void replace_all(std::string &text, const std::string &from, const std::string &to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

std::string escaped_text(std::string text) {
    for (const auto &[from, to] : {std::pair("&", "&amp;"), {"<", "&lt;"}, {">", "&gt;"}}) replace_all(text, from, to);
    return text;
}

/// Returns JSON that is safe inside of a script element: without `<`, no text of the data can end the element.
std::string escaped_json(const nlohmann::ordered_json &data) {
    std::string text = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    replace_all(text, "<", "\\u003c");
    return text;
}

/// Returns a file of the folder of pages. The configure step finds or fetches plotly.js, so an installation may lack it.
std::string page_file(const std::filesystem::path &pages, const std::string &name) {
    if (!std::filesystem::exists(pages / name))
        throw UserError(failed_action("read " + (pages / name).string(), "this installation of Scalide lacks the file",
                                      name.starts_with("plotly")
                                          ? "Configure Scalide with SCALIDE_PLOTLY_ROOT, or with SCALIDE_FETCH_HALIDE and a network"
                                          : "Install Scalide again"));
    return read_file(pages / name);
}

/// Returns a script that no text in its literals can end. `<\/script` and `</script` are the same in a literal.
std::string script_element(std::string code) {
    for (const auto &[from, to] : {std::pair("</script", "<\\/script"), {"<!--", "<\\!--"}}) replace_all(code, from, to);
    return "<script>\n" + code + "</script>\n";
}

/// Replaces each `{{name}}` of a template. Texts that are inserted are not searched.
std::string filled(const std::string &form, const std::map<std::string, std::string> &parts) {
    std::string text;
    size_t at = 0;
    for (size_t mark = form.find("{{"); mark != std::string::npos; mark = form.find("{{", at)) {
        const size_t end = form.find("}}", mark);
        const auto part = parts.find(form.substr(mark + 2, end - mark - 2));
        if (end == std::string::npos || part == parts.end()) throw InternalError("page.html has a mark that no text replaces");
        text += form.substr(at, mark - at) + part->second;
        at = end + 2;
    }
    return text + form.substr(at);
}

} // namespace

std::string to_html(const Page &page, const nlohmann::ordered_json &data, const std::filesystem::path &pages) {
    std::string styles = page_file(pages, "page.css"), scripts = script_element(page_file(pages, "page.js"));
    for (const std::string &name : page.styles) styles += page_file(pages, name);
    for (const std::string &name : page.scripts) scripts += script_element(page_file(pages, name));
    return filled(page_file(pages, "page.html"),
                  {{"title", escaped_text(page.title)}, {"styles", styles}, {"data", escaped_json(data)}, {"scripts", scripts}});
}

} // namespace scalide
