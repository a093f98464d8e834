// Shows the description with Swagger UI, where requests can be tried, instead of as text.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

window.addEventListener("DOMContentLoaded", () => {
  SwaggerUIBundle({
    url: "/docs/openapi.json",
    dom_id: "#try",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    validatorUrl: null,
    onComplete: () => {
      document.getElementById("text").hidden = true;
    },
  });
});
