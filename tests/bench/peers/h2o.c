/* libh2o: the ceiling of what one core of this kernel serves over HTTP/1.1. Answers and keys are in two hash tables
 * that are filled before the first request; nothing is looked up, counted or limited.
 *
 *   h2o PORT ANSWERS KEYS
 *
 * ANSWERS as starting.py writes it, for each answer: a line with the target, a line per header, an empty line, and the
 * body, which is one line. KEYS: one a line.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <search.h>
#include <signal.h>
#include <stdio.h>

#include <h2o.h>
#include <h2o/http1.h>

enum { MOST_HEADERS = 24, LONGEST = 512, ACCEPTED_AT_ONCE = 16, TABLE = 1 << 16 };

typedef struct {
    h2o_iovec_t name, value;
} header_t;

typedef struct {
    header_t headers[MOST_HEADERS];
    size_t count;
    h2o_iovec_t body;
} answer_t;

static struct hsearch_data answers, keys;
static h2o_accept_ctx_t accepting;
static h2o_context_t context;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* The next line without its end, to be freed or kept; NULL at the end of the file. */
static char *line_of(FILE *file, size_t *length) {
    char *line = NULL;
    size_t room = 0;
    ssize_t read = getline(&line, &room, file);
    if (read < 0)
        return NULL;
    if (read > 0 && line[read - 1] == '\n')
        line[--read] = '\0';
    *length = read;
    return line;
}

static void put(struct hsearch_data *table, char *name, void *value) {
    ENTRY *found;
    if (!hsearch_r((ENTRY){name, value}, ENTER, &found, table))
        fail("table");
}

/* What `table` has under a name that does not end with a zero, or NULL. */
static void *get(struct hsearch_data *table, const char *name, size_t length) {
    char copy[LONGEST];
    ENTRY *found;
    if (length >= sizeof(copy))
        return NULL;
    memcpy(copy, name, length);
    copy[length] = '\0';
    return hsearch_r((ENTRY){copy, NULL}, FIND, &found, table) ? found->data : NULL;
}

static void read_answers(const char *path) {
    FILE *file = fopen(path, "r");
    char *target, *line;
    size_t length;
    if (file == NULL)
        fail(path);
    while ((target = line_of(file, &length)) != NULL) {
        answer_t *answer = calloc(1, sizeof(*answer));
        while ((line = line_of(file, &length)) != NULL && length > 0 && answer->count < MOST_HEADERS) {
            char *colon = strchr(line, ':');
            if (colon == NULL)
                fail("a header without a colon");
            *colon = '\0';
            answer->headers[answer->count++] =
                (header_t){h2o_iovec_init(line, colon - line), h2o_iovec_init(colon + 2, strlen(colon + 2))};
        }
        line = line_of(file, &length);
        answer->body = h2o_iovec_init(line, length);
        put(&answers, target, answer);
    }
    fclose(file);
}

static void read_keys(const char *path) {
    FILE *file = fopen(path, "r");
    char *line;
    size_t length;
    if (file == NULL)
        fail(path);
    while ((line = line_of(file, &length)) != NULL)
        put(&keys, line, line);
    fclose(file);
}

static const h2o_iovec_t *header_of(h2o_req_t *request, const char *name, size_t length) {
    ssize_t found = h2o_find_header_by_str(&request->headers, name, length, -1);
    return found < 0 ? NULL : &request->headers.entries[found].value;
}

static int refuse(h2o_req_t *request, int status, const char *reason) {
    request->res.status = status;
    request->res.reason = reason;
    request->res.content_length = 0;
    h2o_send_inline(request, H2O_STRLIT(""));
    return 0;
}

static int on_request(h2o_handler_t *handler, h2o_req_t *request) {
    static h2o_generator_t generator = {NULL, NULL};
    const h2o_iovec_t *key = header_of(request, H2O_STRLIT("x-api-key"));
    const h2o_iovec_t *id = header_of(request, H2O_STRLIT("x-request-id"));
    answer_t *answer;
    (void)handler;
    if (key == NULL || get(&keys, key->base, key->len) == NULL)
        return refuse(request, 401, "Unauthorized");
    if ((answer = get(&answers, request->path.base, request->path.len)) == NULL)
        return refuse(request, 404, "Not Found");
    request->res.status = 200;
    request->res.reason = "OK";
    request->res.content_length = answer->body.len;
    for (size_t i = 0; i < answer->count; i++) {
        header_t *one = &answer->headers[i];
        h2o_add_header_by_str(&request->pool, &request->res.headers, one->name.base, one->name.len, 0, NULL,
                              one->value.base, one->value.len);
    }
    if (id != NULL)
        h2o_add_header_by_str(&request->pool, &request->res.headers, H2O_STRLIT("x-request-id"), 0, NULL, id->base,
                              id->len);
    h2o_start_response(request, &generator);
    h2o_send(request, &answer->body, 1, H2O_SEND_STATE_FINAL);
    return 0;
}

static void on_connection(h2o_socket_t *listener, const char *error) {
    h2o_socket_t *socket;
    if (error != NULL)
        return;
    for (int i = 0; i < ACCEPTED_AT_ONCE && (socket = h2o_evloop_socket_accept(listener)) != NULL; i++)
        h2o_accept(&accepting, socket);
}

int main(int count, char **arguments) {
    static h2o_globalconf_t config;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (count != 4 || !hcreate_r(TABLE, &answers) || !hcreate_r(TABLE, &keys))
        fail("h2o PORT ANSWERS KEYS");
    signal(SIGPIPE, SIG_IGN);
    read_answers(arguments[2]);
    read_keys(arguments[3]);

    h2o_config_init(&config);
    h2o_hostconf_t *host = h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_create_handler(h2o_config_register_path(host, "/", 0), sizeof(h2o_handler_t))->on_req = on_request;
    h2o_context_init(&context, h2o_evloop_create(), &config);
    accepting.ctx = &context;
    accepting.hosts = config.hosts;

    address.sin_port = htons(atoi(arguments[1]));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(listener, 4096) != 0)
        fail("listen");
    h2o_socket_read_start(h2o_evloop_socket_create(context.loop, listener, H2O_SOCKET_FLAG_DONT_READ), on_connection);
    while (h2o_evloop_run(context.loop, INT32_MAX) == 0)
        ;
    return 1;
}
