from tests.support.generated_pages import render_pages

if __name__ == "__main__":
    for page, text in render_pages().items():
        page.write_text(text)
