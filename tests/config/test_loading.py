"""Where settings come from, which of them wins, and what is said about a bad one."""

from pathlib import Path
from typing import Any

import pytest

from config.loading import default_data_dir, load
from config.metadata import is_secret, names
from config.settings import DEFAULT_ATTRIBUTION, SettingsError

SECRET = "hunter2-and-a-few-more-characters"


def toml(folder: Path, content: str) -> dict[str, str]:
    """An environment that names a TOML file with `content`."""
    path = folder / "forecast.toml"
    path.write_text(content)
    return {"FORECAST_CONFIG": str(path)}


def refusal(environ: dict[str, str]) -> str:
    """What loading `environ` is refused with; one line that never shows a secret."""
    with pytest.raises(SettingsError) as caught:
        load(environ)
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    return message


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("WORKERS", "4", 4),
        ("WORKERS", " 4\n", 4),
        ("DRAIN", "2.5", 2.5),
        ("DRAIN", "3", 3.0),
        ("DOCS", "true", True),
        ("DOCS", "0", False),
        ("LOG_FORMAT", "json", "json"),
        ("LISTEN_HOST", "::", "::"),
        ("ATTRIBUTION", "A one | B two|", ("A one", "B two")),
        ("KEYS_URL", "rediss://u:p@h:6380/2", "rediss://u:p@h:6380/2"),
        ("KEYS_URL", "embedded", "embedded"),
        ("LOOKUP_MEMORY", "134217728", 134_217_728),
        ("NEAR_CACHE_BYTES", "0", 0),
        ("DROP_EVERY", "31d", 2_678_400.0),
        ("DROP_EVERY", "86400", 86_400.0),
        ("CACHE_TTL", "12h", 43_200),
        ("INBOX_QUIET", "2m", 120.0),
        ("INBOX_QUIET", "never", "never"),
        ("INBOX_TABLES", "population, housing,", ("population", "housing")),
        ("OPERATOR_ALLOWED_HOSTS", "ops.example.org, [2001:db8::1]", ("ops.example.org", "[2001:db8::1]")),
        ("INBOX_HOLD", "total-drift,zip-codes-lost", ("total-drift", "zip-codes-lost")),
    ],
)
def test_a_variable_is_read_as_its_setting_s_type(variable: str, text: str, value: object) -> None:
    loaded = load({f"FORECAST_{variable}": text})
    assert getattr(loaded.settings, variable.lower()) == value
    assert loaded.sources[variable.lower()] == f"FORECAST_{variable}"


@pytest.mark.parametrize(
    ("variable", "text", "said"),
    [
        ("LIMITS", "total-drift=inf", "Expected a number of at most 1000000000, got "),
        ("WORKERS", "many", "Expected a whole number, got 'many' (Worker processes;"),
        ("WORKERS", "0", "Expected a whole number of at least 1, got '0'"),
        ("WORKERS", "2.5", "Expected a whole number, got '2.5'"),
        ("LISTEN_PORT", "65536", "Expected a whole number of at most 65535, got '65536'"),
        ("DRAIN", "nan", "got 'nan'"),
        ("DRAIN", "-1", "Expected a number of at least 0"),
        ("NEAR_CACHE_BYTES", "-1", "Expected a whole number of at least 0"),
        ("NEAR_CACHE_TTL", "0", "Expected a number above 0"),
        ("DOCS", "maybe", "Expected true or false, got 'maybe'"),
        ("LOG_FORMAT", "xml", "Expected one of auto, json, text, got 'xml'"),
        ("DROP_EVERY", "monthly", "Expected seconds (90) or a duration (30m, 12h, 31d), got 'monthly' (Longest time "),
        ("KEEP_ALIVE", "2.5", "Expected whole seconds (90) or a duration (30m, 12h, 31d), got '2.5'"),
        ("DROP_EVERY", "0d", "Expected a number of at least 1"),
        ("WORKERS", "2m", "got '2m'"),
        ("INBOX_QUIET", "often", "Expected seconds (90) or a duration (30m, 12h, 31d), got 'often' (Time without"),
        ("INBOX_QUIET", "2d", "Expected a number of at most 86400"),
        ("INBOX_TABLES", "housing, popluation", "aliases, development_projects in place of 'popluation'"),
        ("INBOX_TABLES", "popluation", "must have, separated by commas: locations, population, housing, aliases, "),
        ("ACCESS_LOG", "some", "Expected one of off, errors, all, got 'some'"),
        ("ACCESS_LOG", "2", "Expected a number of at most 1"),
        (
            "PUBLIC_URL",
            "example.com",
            "Not in the expected form, got 'example.com' (The partners' URL of the service",
        ),
        ("DATA_DIR", "~nobody-of-this-name/data", "names a user that does not exist"),
        ("KEYS_URL", "localhost:6379", "must be redis://, rediss:// or unix://, or `embedded`"),
        ("CACHE_URL", f"redis://u:{SECRET}#@h", "percent-encoded"),
    ],
)
def test_a_bad_value_is_refused_by_name(variable: str, text: str, said: str) -> None:
    message = refusal({f"FORECAST_{variable}": text})
    assert message.startswith(f"FORECAST_{variable}: ")
    assert said in message


@pytest.mark.parametrize("text", ["", "  "])
@pytest.mark.parametrize("variable", ["WORKERS", "KEYS_URL", "KEYS_PEPPER", "ATTRIBUTION", "CONFIG"])
def test_an_empty_variable_is_refused(variable: str, text: str) -> None:
    """An empty variable is somebody's mistake (a substitution that found nothing), not a wish for the default."""
    message = refusal({f"FORECAST_{variable}": text})
    assert message.startswith(f"FORECAST_{variable}: is empty; remove it")


def test_a_toml_file_has_types(tmp_path: Path) -> None:
    environ = toml(tmp_path, 'workers = 4\ndrain = 3\ndocs = true\nattribution = ["A", "B"]\nkeys_url = "redis://h"\n')
    settings = load(environ).settings
    assert (settings.workers, settings.drain, settings.docs) == (4, 3.0, True)
    assert (settings.attribution, settings.keys_url) == (("A", "B"), "redis://h")
    assert "workers: Expected a whole number, got true" in refusal(toml(tmp_path, "workers = true"))
    assert "drop_every: Expected seconds (90) or a duration" in refusal(toml(tmp_path, "drop_every = true"))


def test_a_toml_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    assert f"cannot read {missing}: No such file" in refusal({"FORECAST_CONFIG": str(missing)})
    assert "forecast.toml: not TOML" in refusal(toml(tmp_path, "workers 4"))
    (tmp_path / "forecast.toml").write_bytes(b"\xff\xfe")
    assert "forecast.toml: not TOML" in refusal({"FORECAST_CONFIG": str(tmp_path / "forecast.toml")})


def test_unknown_names_are_errors_with_hints() -> None:
    message = refusal({"FORECAST_WORKER": "4", "FORECAST_KEY_URL_FILE": "x", "FORECAST_QZX": "1"})
    assert "unknown settings FORECAST_KEY_URL_FILE (did you mean FORECAST_KEYS_URL_FILE?)" in message
    assert "FORECAST_WORKER (did you mean FORECAST_WORKERS?)" in message
    assert ", FORECAST_QZX, " in message


def test_unknown_names_in_toml_are_hinted_as_toml_spells_them(tmp_path: Path) -> None:
    message = refusal(toml(tmp_path, "worker = 4\n[redis]\nurl = 'x'\n"))
    assert "forecast.toml: unknown settings worker (did you mean workers?), redis" in message


def test_what_kubernetes_injects_is_not_ours() -> None:
    injected = {
        "FORECAST_PORT": "tcp://10.0.0.1:8000",
        "FORECAST_PORT_8000_TCP": "tcp://10.0.0.1:8000",
        "FORECAST_PORT_8000_TCP_ADDR": "10.0.0.1",
        "FORECAST_SERVICE_HOST": "10.0.0.1",
        "FORECAST_SERVICE_PORT": "8000",
        "FORECAST_SERVICE_PORT_PARTNERS": "8000",
    }
    others = {"WORKERS": "x", "forecast_workers": "x", "FORECASTER_X": "1"}
    assert load(injected | others) == load({})


@pytest.mark.parametrize("name", [name for name in names() if is_secret(name)])
def test_every_secret_can_come_from_a_file(name: str, tmp_path: Path) -> None:
    secret = f"redis://:{SECRET}@h" if name.endswith("url") else SECRET
    file = tmp_path / "secret"
    file.write_text(f"{secret}\n")
    variable = f"FORECAST_{name.upper()}_FILE"
    loaded = load({variable: str(file)})
    assert getattr(loaded.settings, name) == secret
    assert loaded.sources[name] == variable
    assert getattr(load(toml(tmp_path, f'{name}_file = "{file}"')).settings, name) == secret


def test_only_secrets_come_from_files() -> None:
    assert "FORECAST_WORKERS_FILE (did you mean FORECAST_WORKERS?)" in refusal({"FORECAST_WORKERS_FILE": "/x"})


def test_a_secret_set_twice_is_refused(tmp_path: Path) -> None:
    """The value and its file in one place: nobody can tell which was meant, so neither is taken."""
    both = {"FORECAST_KEYS_PEPPER": SECRET, "FORECAST_KEYS_PEPPER_FILE": "/x"}
    assert refusal(both) == "FORECAST_KEYS_PEPPER_FILE and FORECAST_KEYS_PEPPER are both set; keep one"
    message = refusal(toml(tmp_path, f'keys_pepper = "{SECRET}"\nkeys_pepper_file = "/x"'))
    assert message.endswith("keys_pepper_file and keys_pepper are both set; keep one")


def test_a_secret_s_file_that_is_no_use_is_named(tmp_path: Path) -> None:
    empty, binary, missing = tmp_path / "empty", tmp_path / "binary", tmp_path / "missing"
    empty.write_text(" \n")
    binary.write_bytes(b"\xff\xfe")
    for location, said in (
        (str(missing), f"cannot read {missing}: No such file or directory"),
        (str(empty), f"{empty} is empty"),
        (str(binary), f"{binary} is not UTF-8 text"),
        ("", "must be the path of a file"),
    ):
        message = refusal({"FORECAST_KEYS_PEPPER_FILE": location})
        assert message == f"FORECAST_KEYS_PEPPER_FILE: {said}"
    assert "keys_pepper_file: must be the path of a file" in refusal(toml(tmp_path, "keys_pepper_file = 5"))


def test_a_bad_secret_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"h:{SECRET}@6379")
    assert refusal({"FORECAST_KEYS_URL_FILE": str(file)}).startswith("FORECAST_KEYS_URL_FILE: must be redis://")
    assert "1234567890" not in refusal(toml(tmp_path, "keys_pepper = 1234567890"))
    unclosed = refusal({"FORECAST_INBOX_ON_REFUSAL": f"notify '{SECRET}"})
    assert unclosed == "FORECAST_INBOX_ON_REFUSAL: is not a command: No closing quotation"


@pytest.mark.parametrize("name", ["OPERATOR_READ_TOKEN", "OPERATOR_WRITE_TOKEN"])
@pytest.mark.parametrize("token", ["short-by-a-char", f"{SECRET} x", f"{SECRET}\tx", f"{SECRET}é", f"{SECRET}\nx"])
def test_a_token_that_no_header_could_carry_is_refused(name: str, token: str) -> None:
    message = refusal({f"FORECAST_{name}": token})
    wrong = "Expected at least 16 characters" if len(token) < 16 else "Not in the expected form"
    assert message.startswith(f"FORECAST_{name}: {wrong} (Bearer token for ")
    assert "no white space" in message
    assert token not in message


def test_the_two_tokens_are_not_the_same(tmp_path: Path) -> None:
    """Else a caller with the right to read could write."""
    (tmp_path / "token").write_text(f"{SECRET}\n")
    environ = {"FORECAST_OPERATOR_READ_TOKEN": SECRET, "FORECAST_OPERATOR_WRITE_TOKEN_FILE": str(tmp_path / "token")}
    reported = (
        "FORECAST_OPERATOR_READ_TOKEN and FORECAST_OPERATOR_WRITE_TOKEN_FILE are the same token; use two different ones"
    )
    assert refusal(environ) == reported
    other = load(environ | {"FORECAST_OPERATOR_READ_TOKEN": f"{SECRET}-2"}).settings
    assert (other.operator_read_token, other.operator_write_token) == (f"{SECRET}-2", SECRET)


def test_options_win_over_variables_over_the_file_over_defaults(tmp_path: Path) -> None:
    environ = toml(tmp_path, "workers = 2\ndrain = 2\nmax_age = 2\n")
    environ |= {"FORECAST_DRAIN": "3", "FORECAST_MAX_AGE": "3"}
    options: dict[str, Any] = {"max_age": 4, "workers": None}
    loaded = load(environ, options)
    settings = loaded.settings
    assert (settings.keep_alive, settings.workers, settings.drain, settings.max_age) == (75, 2, 3.0, 4)
    assert loaded.sources["keep_alive"] == "default"
    assert loaded.sources["workers"] == f"{tmp_path}/forecast.toml: workers"
    assert loaded.sources["drain"] == "FORECAST_DRAIN"
    assert loaded.sources["max_age"] == "the command line"


def test_a_bad_option_is_refused_like_a_bad_variable() -> None:
    with pytest.raises(SettingsError, match="the command line: Expected a whole number of at most 65535, got 70000"):
        load({}, {"listen_port": 70_000})


def test_a_file_s_secret_and_a_variable_s_do_not_collide(tmp_path: Path) -> None:
    (tmp_path / "pepper").write_text("the pepper of the file")
    environ = toml(tmp_path, f'keys_pepper_file = "{tmp_path}/pepper"') | {"FORECAST_KEYS_PEPPER": SECRET}
    assert load(environ).settings.keys_pepper == SECRET


@pytest.mark.parametrize("name", ["FORECAST_ACCESS_LOG", "FORECAST_TRACES"])
def test_a_share_may_be_a_percentage(name: str) -> None:
    field = name.removeprefix("FORECAST_").lower()
    assert getattr(load({name: "1%"}).settings, field) == getattr(load({name: "0.01"}).settings, field) == 0.01
    assert name in refusal({name: "150%"})
    assert name in refusal({name: "some%"})


def test_nothing_needs_to_be_set() -> None:
    settings = load({}).settings
    assert (settings.keys_url, settings.cache_url, settings.embedded_allowed) == ("embedded", "embedded", True)
    assert (settings.listen_host, settings.operator_host) == ("127.0.0.1", "127.0.0.1")
    assert settings.attribution == DEFAULT_ATTRIBUTION
    assert set(load({}).sources.values()) == {"default"}


def test_a_checkout_keeps_its_data_to_itself(tmp_path: Path) -> None:
    assert load({}, checkout=tmp_path).settings.data_path == tmp_path / ".forecast"


def test_an_installation_keeps_its_data_with_the_user_s() -> None:
    assert default_data_dir({"HOME": "/home/a"}, None) == Path("/home/a/.local/share/forecast")
    assert default_data_dir({"HOME": "/home/a", "XDG_DATA_HOME": "/d"}, None) == Path("/d/forecast")
    assert default_data_dir({"HOME": "/home/a", "XDG_DATA_HOME": ""}, None) == Path("/home/a/.local/share/forecast")


@pytest.mark.parametrize("marker", ["a/b", ".", "..", "/", "a\0"])
def test_a_marker_is_the_name_of_one_file(marker: str) -> None:
    assert "FORECAST_INBOX_MARKER" in refusal({"FORECAST_INBOX_MARKER": marker})
    assert load({"FORECAST_INBOX_MARKER": "_COMPLETE"}).settings.inbox_marker == "_COMPLETE"


def test_the_inbox_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load({"FORECAST_INBOX": "inbox"}).settings.inbox == str(tmp_path / "inbox")
    assert load({}).settings.inbox is None


def test_the_data_folder_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/a")
    assert load({"FORECAST_DATA_DIR": "data"}).settings.data_path == tmp_path / "data"
    assert load({"FORECAST_DATA_DIR": "~/data"}).settings.data_path == Path("/home/a/data")
