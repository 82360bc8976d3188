#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace scalide {

/// A self-contained HTML page: it contains its styles, scripts and data, and loads nothing. Its scripts use the object `page` of page.js.
struct Page {
    std::string title;
    std::vector<std::string> styles, scripts; ///< names of files in the folder of pages, after page.css and page.js
};

/// Returns the page with data that its scripts read as `page.data`. `pages` is the folder of an installation (Home). Throws UserError if
/// the folder lacks a file.
std::string to_html(const Page &page, const nlohmann::ordered_json &data, const std::filesystem::path &pages);

} // namespace scalide
