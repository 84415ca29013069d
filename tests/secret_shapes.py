# ruff: noqa: E501 - a shape is easier to read in one line, and a prefix in two pieces is not a key
"""Files with secrets, in the formats that their programs document, with values generated at run time.

Written from the public documentation of the formats before the patterns of `workspace/secret_text.toml` existed. This
file contains no values: each comes from a seeded generator, so that secret scanners do not report these tests.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator

import msgspec

_ALNUM = string.ascii_letters + string.digits
_LOWER = string.ascii_lowercase + string.digits
_UPPER = string.ascii_uppercase + string.digits
_WORD = _ALNUM + "_-"
_PASSWORD = _ALNUM + "!#%+.:?_~^-"


class Shape(msgspec.Struct, frozen=True):
    """A file: its kind, its usual path, its text, and the values that must not be sent."""

    kind: str
    path: str
    text: str
    values: tuple[str, ...]


class Fake:
    """Generates values; those of `secret` are recorded as values that must not be sent."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.values: list[str] = []

    def of(self, letters: str, length: int) -> str:
        """Return characters that do not count as a secret."""
        return "".join(self._random.choice(letters) for _ in range(length))

    def secret(self, letters: str, length: int, before: str = "", after: str = "") -> str:
        """Return a secret value and record it."""
        value = before + self.of(letters, length) + after
        self.values.append(value)
        return value

    def hex(self, length: int, before: str = "") -> str:
        """Return a secret of hexadecimal digits."""
        return self.secret("0123456789abcdef", length, before)

    def word(self, length: int, before: str = "") -> str:
        """Return a secret of letters, digits, `_` and `-`."""
        return self.secret(_WORD, length, before)

    def alnum(self, length: int, before: str = "", after: str = "") -> str:
        """Return a secret of letters and digits."""
        return self.secret(_ALNUM, length, before, after)

    def upper(self, length: int, before: str = "") -> str:
        """Return a secret of upper-case letters and digits."""
        return self.secret(_UPPER, length, before)

    def lower(self, length: int, before: str = "") -> str:
        """Return a secret of lower-case letters and digits."""
        return self.secret(_LOWER, length, before)

    def base64(self, count: int) -> str:
        """Return the base64 of `count` bytes as a secret."""
        value = base64.b64encode(self._random.randbytes(count)).decode()
        self.values.append(value)
        return value

    def password(self) -> str:
        """Return a password like those of a password generator."""
        inner = self.of(_PASSWORD, self._random.randrange(10, 18))
        value = self.of(string.ascii_letters, 1) + inner + self.of(_ALNUM, 1) + self.of(string.digits, 1)
        self.values.append(value)
        return value

    def chosen_password(self) -> str:
        """Return a password in the form that people choose: words, digits, a punctuation mark."""
        words = "tiger summer blue rocket winter panda coffee dragon monkey silver happy ocean".split()
        first, second = self._random.sample(words, 2)
        value = f"{first.title()}{second}{self._random.randrange(10, 9999)}{self._random.choice('!?#.')}"
        self.values.append(value)
        return value

    def uuid(self) -> str:
        """Return a secret in the form of a UUID."""
        digits = "0123456789abcdef"
        value = "-".join(self.of(digits, length) for length in (8, 4, 4, 4, 12))
        self.values.append(value)
        return value

    def jwt(self) -> str:
        """Return a signed JSON web token."""

        def part(value: object) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        head = part({"alg": "HS256", "typ": "JWT"})
        body = part({"sub": self.of(string.digits, 10), "name": self.of(_LOWER, 8), "iat": 1516239022})
        value = f"{head}.{body}.{self.of(_WORD, 43)}"
        self.values.append(value)
        return value

    def pem(self, label: str, size: int = 900, between: str = "") -> str:
        """Return a PEM block with lines of 64 characters."""
        encoded = base64.b64encode(self._random.randbytes(size)).decode()
        lines = [encoded[at : at + 64] for at in range(0, len(encoded), 64)]
        self.values += lines
        dashes = "-" * 5
        return (
            "\n".join(
                [
                    f"{dashes}BEGIN {label}{dashes}",
                    *([between] if between else []),
                    *lines,
                    f"{dashes}END {label}{dashes}",
                ]
            )
            + "\n"
        )


Writer = Callable[[Fake], "tuple[str, str]"]
_writers: list[tuple[str, Writer]] = []


def _shape(kind: str) -> Callable[[Writer], Writer]:
    def note(writer: Writer) -> Writer:
        _writers.append((kind, writer))
        return writer

    return note


def shapes(seed: int = 1) -> Iterator[Shape]:
    """Yield every shape, with values generated from this seed."""
    for number, (kind, write) in enumerate(_writers):
        fake = Fake(seed * 10_000 + number)
        path, text = write(fake)
        yield Shape(kind, path, text, tuple(fake.values))
    yield from _provider_keys(seed)


# ---- keys of providers, each in three kinds of files

_KEYS: dict[str, Callable[[Fake], str]] = {
    # docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    "aws access key": lambda f: f.secret(string.ascii_uppercase + "234567", 16, "AK" + "IA"),
    "aws temporary key": lambda f: f.secret(string.ascii_uppercase + "234567", 16, "AS" + "IA"),
    "google api key": lambda f: f.word(35, "AI" + "za"),
    "google oauth secret": lambda f: f.word(28, "GOC" + "SPX-"),
    "google oauth token": lambda f: f.word(120, "ya" + "29."),
    "openai project key": lambda f: f.word(74, "sk-" + "proj-") + "T3Blbk" + "FJ" + f.of(_WORD, 74),
    "openai key": lambda f: f.alnum(48, "s" + "k-"),
    "anthropic key": lambda f: f.word(93, "sk-" + "ant-api03-") + "AA",
    "openrouter key": lambda f: f.hex(64, "sk-" + "or-v1-"),
    "groq key": lambda f: f.alnum(52, "gs" + "k_"),
    "xai key": lambda f: f.alnum(80, "xa" + "i-"),
    "perplexity key": lambda f: f.alnum(48, "pp" + "lx-"),
    "hugging face token": lambda f: f.secret(string.ascii_letters, 34, "h" + "f_"),
    "replicate token": lambda f: f.alnum(37, "r" + "8_"),
    "nvidia key": lambda f: f.word(64, "nv" + "api-"),
    "deepseek key": lambda f: f.hex(32, "s" + "k-"),
    "github token": lambda f: f.alnum(36, "gh" + "p_"),
    "github server token": lambda f: f.alnum(36, "gh" + "s_"),
    "github fine-grained token": lambda f: f.alnum(22, "github" + "_pat_") + "_" + f.of(_ALNUM, 59),
    "gitlab token": lambda f: f.word(20, "gl" + "pat-"),
    "gitlab runner token": lambda f: f.word(20, "gl" + "rt-"),
    "gitlab deploy token": lambda f: f.word(20, "gl" + "dt-"),
    "atlassian token": lambda f: f.word(180, "ATA" + "TT3xFfGF0") + "=" + f.of(_UPPER, 8),
    "bitbucket app password": lambda f: f.alnum(28, "AT" + "BB") + f.of(_UPPER, 8),
    "slack bot token": lambda f: (
        f.secret(string.digits, 12, "xo" + "xb-") + "-" + f.of(string.digits, 12) + "-" + f.alnum(24)
    ),
    "slack app token": lambda f: "xap" + "p-1-A" + f.of(_UPPER, 10) + "-" + f.of(string.digits, 13) + "-" + f.hex(64),
    "slack webhook": lambda f: (
        "https://hooks.slack" + ".com/services/T" + f.of(_UPPER, 8) + "/B" + f.of(_UPPER, 10) + "/" + f.alnum(24)
    ),
    "discord webhook": lambda f: "https://discord" + ".com/api/webhooks/" + f.of(string.digits, 18) + "/" + f.word(68),
    "discord bot token": lambda f: f.secret(_ALNUM, 23, "M") + "." + f.of(_WORD, 6) + "." + f.word(38),
    "teams webhook": lambda f: (
        "https://acme.webhook" + f".office.com/webhookb2/{f.uuid()}@{f.uuid()}/IncomingWebhook/{f.hex(32)}/{f.uuid()}"
    ),
    "telegram bot token": lambda f: f.of(string.digits, 10) + ":" + f.word(33, "AA"),
    "stripe secret key": lambda f: f.alnum(24, "sk" + "_live_"),
    "stripe test key": lambda f: f.alnum(99, "sk" + "_test_"),
    "stripe restricted key": lambda f: f.alnum(24, "rk" + "_live_"),
    "stripe webhook secret": lambda f: f.alnum(32, "wh" + "sec_"),
    "square token": lambda f: f.word(60, "EA" + "AA"),
    "square secret": lambda f: f.word(43, "sq0" + "csp-"),
    "shopify token": lambda f: f.hex(32, "shp" + "at_"),
    "shopify secret": lambda f: f.hex(32, "shp" + "ss_"),
    "twilio key": lambda f: f.hex(32, "S" + "K"),
    "sendgrid key": lambda f: f.word(22, "S" + "G.") + "." + f.word(43),
    "mailgun key": lambda f: f.hex(32, "ke" + "y-"),
    "mailchimp key": lambda f: f.hex(32) + "-us" + f.of(string.digits[1:], 2),
    "brevo key": lambda f: f.hex(64, "xkey" + "sib-") + "-" + f.of(_ALNUM, 16),
    "postmark like uuid": lambda f: "POSTMARK_SERVER_TOKEN=" + f.uuid(),
    "npm token": lambda f: f.alnum(36, "np" + "m_"),
    "pypi token": lambda f: f.word(150, "pypi-" + "AgEIcHlwaS5vcmc"),
    "rubygems key": lambda f: f.hex(48, "ruby" + "gems_"),
    "crates.io token": lambda f: f.alnum(32, "ci" + "o"),
    "nuget key": lambda f: f.lower(43, "oy" + "2"),
    "docker hub token": lambda f: f.word(27, "dck" + "r_pat_"),
    "digitalocean token": lambda f: f.hex(64, "dop" + "_v1_"),
    "heroku key": lambda f: f.word(60, "HRKU-" + "AA"),
    "fly.io token": lambda f: f.secret(_ALNUM + "+/", 140, "fm" + "2_"),
    "render key": lambda f: f.alnum(28, "rn" + "d_"),
    "netlify token": lambda f: f.alnum(36, "nf" + "p_"),
    "vercel blob token": lambda f: f.alnum(48, "vercel_blob" + "_rw_"),
    "supabase key": lambda f: f.hex(40, "sb" + "p_"),
    "planetscale password": lambda f: f.word(43, "pscale" + "_pw_"),
    "databricks token": lambda f: f.hex(32, "da" + "pi"),
    "snowflake-like jwt": lambda f: f.jwt(),
    "hashicorp vault token": lambda f: f.word(95, "hv" + "s."),
    "terraform cloud token": lambda f: f.alnum(14) + ".atla" + "sv1." + f.word(67),
    "doppler token": lambda f: f.alnum(43, "dp.pt" + "."),
    "1password service token": lambda f: "ops" + "_" + f.alnum(280, "eyJ"),
    "pulumi token": lambda f: f.hex(40, "pu" + "l-"),
    "grafana token": lambda f: f.alnum(32, "gls" + "a_") + "_" + f.of("0123456789abcdef", 8),
    "grafana cloud token": lambda f: f.alnum(60, "glc" + "_eyJ"),
    "sentry token": lambda f: f.hex(64, "sntr" + "yu_"),
    "new relic key": lambda f: f.upper(27, "NR" + "AK-"),
    "dynatrace token": lambda f: "dt0" + "c01." + f.of(_UPPER, 24) + "." + f.upper(64),
    "datadog like hex": lambda f: "DD_API_KEY=" + f.hex(32),
    "linear key": lambda f: f.alnum(40, "lin_" + "api_"),
    "notion token": lambda f: f.secret(string.digits, 11, "nt" + "n_") + f.alnum(35),
    "airtable token": lambda f: f.alnum(14, "pa" + "t") + "." + f.hex(64),
    "figma token": lambda f: f.word(40, "fig" + "d_"),
    "postman key": lambda f: f.hex(24, "PM" + "AK-") + "-" + f.hex(34),
    "asana token": lambda f: "ASANA_ACCESS_TOKEN=1/" + f.of(string.digits, 16) + ":" + f.hex(32),
    "mapbox secret token": lambda f: "sk" + "." + f.alnum(80, "eyJ") + "." + f.word(22),
    "facebook token": lambda f: f.alnum(150, "EA" + "AC"),
    "dropbox token": lambda f: f.word(136, "s" + "l."),
    "artifactory key": lambda f: f.alnum(69, "AK" + "Cp"),
    "age key": lambda f: f.secret("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58, "AGE-SECRET" + "-KEY-1"),
    "alibaba key id": lambda f: f.alnum(20, "LT" + "AI"),
    "azure storage key": lambda f: "AccountKey=" + f.base64(64),
    "azure ad client secret": lambda f: f.alnum(3) + "8Q" + "~" + f.word(34),
    "cloudflare origin key": lambda f: f.hex(24, "v1" + ".0-") + "-" + f.hex(146),
    "prefect key": lambda f: f.alnum(36, "pn" + "u_"),
    "tailscale key": lambda f: "tskey" + "-auth-" + f.alnum(17) + "-" + f.alnum(32),
    "ngrok-like key": lambda f: "NGROK_AUTHTOKEN=2" + f.alnum(26) + "_" + f.of(_ALNUM, 21),
    "buildkite token": lambda f: f.hex(40, "bku" + "a_"),
    "circleci token": lambda f: f.alnum(22, "CCI" + "PAT_") + "_" + f.hex(40),
    "sonarqube token": lambda f: f.hex(40, "sq" + "p_"),
    "typeform token": lambda f: f.word(44, "tf" + "p_") + "_" + f.of(_ALNUM, 14),
    "contentful token": lambda f: f.word(43, "CF" + "PAT-"),
    "adyen key": lambda f: f.secret(_ALNUM, 100, "AQ" + "E"),
    "razorpay-like": lambda f: "RAZORPAY_KEY_SECRET=" + f.alnum(24),
    "braintree token": lambda f: "access_token$production$" + f.of(_LOWER, 16) + "$" + f.hex(32),
}


def _in_source(key: str) -> tuple[str, str]:
    return "src/client.py", f'import http\n\nCLIENT = http.connect("{key}")\n\n\ndef main():\n    return CLIENT\n'


def _in_yaml(key: str) -> tuple[str, str]:
    return "deploy/values.yaml", f"service:\n  name: web\n  replicas: 3\n  setting: {key}\n  port: 8080\n"


def _in_notes(key: str) -> tuple[str, str]:
    return "notes/todo.txt", f"- ask Ann about the new endpoint\n- staging uses {key} until Friday\n- clean up\n"


def _provider_keys(seed: int) -> Iterator[Shape]:
    for number, (kind, make) in enumerate(_KEYS.items()):
        for place, put in enumerate((_in_source, _in_yaml, _in_notes)):
            fake = Fake(seed * 10_000 + 5_000 + number * 3 + place)
            path, text = put(make(fake))
            yield Shape(f"key: {kind}", path, text, tuple(fake.values))


# ---- PEM and other key files


@_shape("pem rsa")
def _(f: Fake) -> tuple[str, str]:
    return "conf/server.txt", f.pem("RSA PRIVATE" + " KEY")


@_shape("pem pkcs8")
def _(f: Fake) -> tuple[str, str]:
    return "conf/tls", f.pem("PRIVATE" + " KEY")


@_shape("pem encrypted")
def _(f: Fake) -> tuple[str, str]:
    return "conf/tls2", f.pem("ENCRYPTED PRIVATE" + " KEY")


@_shape("pem ec after its certificate")
def _(f: Fake) -> tuple[str, str]:
    certificate = Fake(3).pem("CERTIFICATE")
    return "conf/chain", certificate + f.pem("EC PRIVATE" + " KEY", 120)


@_shape("pem with headers")
def _(f: Fake) -> tuple[str, str]:
    return "conf/old", f.pem("DSA PRIVATE" + " KEY", 600, "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0AF1\n")


@_shape("openssh key")
def _(f: Fake) -> tuple[str, str]:
    return "backup/deploy", f.pem("OPENSSH PRIVATE" + " KEY", 300)


@_shape("pgp private key")
def _(f: Fake) -> tuple[str, str]:
    return "backup/me", f.pem("PGP PRIVATE" + " KEY BLOCK", 500, "Version: GnuPG v2\n")


@_shape("ssh2 encrypted key")
def _(f: Fake) -> tuple[str, str]:
    return "backup/ssh2", f.pem("SSH2 ENCRYPTED PRIVATE" + " KEY", 300).replace("-----", "---- ", 0)


@_shape("putty key")
def _(f: Fake) -> tuple[str, str]:
    lines = "\n".join(f.secret(_ALNUM + "+/", 64) for _ in range(4))
    head = f"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 1\n{f.of(_ALNUM, 60)}\n"
    return "backup/putty", f"{head}Private-Lines: 4\n{lines}\nPrivate-MAC: {f.of('0123456789abcdef', 64)}\n"


@_shape("pem in json")
def _(f: Fake) -> tuple[str, str]:
    return "conf/app.json", json.dumps({"name": "app", "cert": f.pem("RSA PRIVATE" + " KEY")}, indent=2)


@_shape("pem in yaml")
def _(f: Fake) -> tuple[str, str]:
    body = "".join(f"    {line}\n" for line in f.pem("PRIVATE" + " KEY").splitlines())
    return "conf/app.yaml", f"server:\n  tls: |\n{body}  port: 443\n"


@_shape("pem in source")
def _(f: Fake) -> tuple[str, str]:
    body = "".join(f'    "{line}\\n"\n' for line in f.pem("EC PRIVATE" + " KEY", 120).splitlines())
    return "src/signing.c", f"static const char *KEY =\n{body};\n\nint main(void) {{ return 0; }}\n"


@_shape("pem in one line")
def _(f: Fake) -> tuple[str, str]:
    return "deploy/vars.sh", "export APP_SIGNING='" + f.pem("PRIVATE" + " KEY", 200).replace("\n", "\\n") + "'\n"


@_shape("age identity file")
def _(f: Fake) -> tuple[str, str]:
    key = f.secret("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58, "AGE-SECRET" + "-KEY-1")
    return "home/keys", f"# created: 2024-01-01T10:00:00Z\n# public key: age1{f.of(_LOWER, 58)}\n{key}\n"


@_shape("jwk")
def _(f: Fake) -> tuple[str, str]:
    key = {
        "kty": "RSA",
        "kid": "1",
        "n": f.of(_WORD, 340),
        "e": "AQAB",
        "d": f.word(340),
        "p": f.word(170),
        "q": f.word(170),
    }
    return "conf/jwks.json", json.dumps({"keys": [key]}, indent=2)


@_shape("wireguard")
def _(f: Fake) -> tuple[str, str]:
    return (
        "net/wg0.conf",
        f"[Interface]\nAddress = 10.0.0.2/32\nPrivateKey = {f.base64(32)}\n\n[Peer]\nPublicKey = {Fake(9).base64(32)}\nPresharedKey = {f.base64(32)}\n",
    )


@_shape("ansible vault")
def _(f: Fake) -> tuple[str, str]:
    lines = "\n".join(f.hex(80) for _ in range(6))
    return "group/all.yml", f"$ANSIBLE_VAULT;1.1;AES256\n{lines}\n"


# ---- environment files and assignments


@_shape("env file")
def _(f: Fake) -> tuple[str, str]:
    return "app/.env", f"PORT=3000\nNODE_ENV=production\nSESSION_SECRET={f.alnum(32)}\nDB_PASSWORD={f.password()}\n"


@_shape("env file, quoted")
def _(f: Fake) -> tuple[str, str]:
    return "app/environment", f"PORT=3000\nSMTP_PASSWORD=\"{f.chosen_password()}\"\nAPP_KEY='base64:{f.base64(32)}'\n"


@_shape("env file, exported")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/setup.sh",
        f"#!/bin/sh\nexport PATH=$PATH:/opt/bin\nexport STRIPE_API_KEY={f.alnum(40)}\nexport TOKEN={f.hex(40)}\n",
    )


@_shape("fish and csh")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/config.fish",
        f"set -gx EDITOR nvim\nset -gx GITEA_TOKEN {f.hex(40)}\nsetenv NEXUS_PASSWORD {f.password()}\n",
    )


@_shape("powershell")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/profile.ps1",
        f'$env:Path += ";C:\\bin"\n$env:NUGET_API_KEY = "{f.lower(46)}"\n$password = "{f.chosen_password()}"\n',
    )


@_shape("systemd unit")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/web.service",
        f'[Service]\nExecStart=/usr/bin/web\nEnvironment="WEB_SECRET_KEY={f.alnum(50)}"\nEnvironment=API_TOKEN={f.hex(32)}\n',
    )


@_shape("dockerfile")
def _(f: Fake) -> tuple[str, str]:
    return (
        "Dockerfile",
        f"FROM debian:12\nENV APP_PORT=80\nENV DATABASE_PASSWORD={f.password()}\nENV API_SECRET {f.hex(32)}\nCMD web\n",
    )


@_shape("docker compose")
def _(f: Fake) -> tuple[str, str]:
    return (
        "docker-compose.yml",
        f"services:\n  db:\n    image: postgres\n    environment:\n      POSTGRES_USER: app\n      POSTGRES_PASSWORD: {f.chosen_password()}\n      - MYSQL_ROOT_PASSWORD={f.password()}\n",
    )


@_shape("python settings")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/settings.py",
        f"DEBUG = True\nSECRET_KEY = 'django-insecure-{f.word(50)}'\nDATABASES = {{'default': {{'USER': 'web', 'PASSWORD': '{f.password()}'}}}}\n",
    )


@_shape("javascript config")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/config.js",
        f"module.exports = {{\n  port: 3000,\n  jwtSecret: '{f.alnum(40)}',\n  db: {{ user: 'root', password: '{f.chosen_password()}' }},\n}};\n",
    )


@_shape("typescript constant")
def _(f: Fake) -> tuple[str, str]:
    return "app/client.ts", f'export const clientSecret = "{f.word(40)}";\nconst apiKey: string = `{f.hex(32)}`;\n'


@_shape("ruby secrets")
def _(f: Fake) -> tuple[str, str]:
    return (
        "config/boot.rb",
        f"Rails.application.config.secret_key_base = '{f.hex(128)}'\nDevise.setup {{ |c| c.secret_key = \"{f.hex(64)}\" }}\n",
    )


@_shape("go source")
def _(f: Fake) -> tuple[str, str]:
    return (
        "cmd/main.go",
        f'package main\n\nconst apiToken = "{f.alnum(40)}"\n\nvar cfg = Config{{Password: "{f.password()}"}}\n',
    )


@_shape("java properties")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/application.properties",
        f"server.port=8080\nspring.datasource.username=app\nspring.datasource.password={f.chosen_password()}\njwt.secret={f.alnum(48)}\n",
    )


@_shape("spring yaml")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/application.yml",
        f'spring:\n  datasource:\n    username: app\n    password: {f.chosen_password()}\n  mail:\n    password: "{f.password()}"\n',
    )


@_shape("java source")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/Db.java",
        f'class Db {{\n  private static final String DB_PASSWORD = "{f.chosen_password()}";\n  String accessToken = "{f.alnum(40)}";\n}}\n',
    )


@_shape("c# appsettings")
def _(f: Fake) -> tuple[str, str]:
    return "src/appsettings.json", json.dumps(
        {
            "Logging": {"Level": "Info"},
            "Jwt": {"Key": "app", "SecretKey": f.alnum(44)},
            "ConnectionStrings": {"Default": f"Server=db;Database=app;User Id=sa;Password={f.chosen_password()};"},
        },
        indent=2,
    )


@_shape("web.config")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/web.config",
        f'<configuration>\n<connectionStrings>\n<add name="Db" connectionString="Data Source=db;User ID=sa;Pwd={f.chosen_password()}" />\n</connectionStrings>\n<machineKey validationKey="{f.upper(128)}" decryptionKey="{f.secret("0123456789ABCDEF", 64)}" />\n</configuration>\n',
    )


@_shape("ini")
def _(f: Fake) -> tuple[str, str]:
    return (
        "conf/app.ini",
        f"[database]\nuser = gitea\npasswd = {f.password()}\n\n[security]\nSECRET_KEY = {f.alnum(64)}\nINTERNAL_TOKEN = {f.jwt()}\n",
    )


@_shape("toml")
def _(f: Fake) -> tuple[str, str]:
    return (
        "conf/app.toml",
        f'title = "app"\n\n[server]\nport = 80\napi_key = "{f.alnum(32)}"\nauth_token = "{f.hex(40)}"\n',
    )


@_shape("json settings")
def _(f: Fake) -> tuple[str, str]:
    return "conf/settings.json", json.dumps(
        {"theme": "dark", "smtp": {"user": "a@b.c", "pass": f.password()}, "api_token": f.alnum(36)}, indent=2
    )


@_shape("json in one line")
def _(f: Fake) -> tuple[str, str]:
    return "conf/min.json", json.dumps(
        {"accessToken": f.alnum(60), "refreshToken": f.alnum(60), "expires": 3600}, separators=(",", ":")
    )


@_shape("lua config")
def _(f: Fake) -> tuple[str, str]:
    return (
        "lua/plugins/ai.lua",
        f'return {{\n  "x/ai.nvim",\n  opts = {{ api_key = "{f.alnum(48)}", model = "big" }},\n}}\n',
    )


@_shape("vimscript")
def _(f: Fake) -> tuple[str, str]:
    return "plugin/keys.vim", f"set number\nlet g:github_access_token = '{f.hex(40)}'\n"


@_shape("php define")
def _(f: Fake) -> tuple[str, str]:
    return (
        "web/wp-config.php",
        f"<?php\ndefine( 'DB_NAME', 'wordpress' );\ndefine( 'DB_PASSWORD', '{f.password()}' );\ndefine( 'AUTH_KEY', '{f.secret(_ALNUM + '!@#%^&*()', 64)}' );\ndefine('NONCE_SALT', '{f.secret(_ALNUM + '!@#%^&*()', 64)}');\n",
    )


@_shape("php array")
def _(f: Fake) -> tuple[str, str]:
    return (
        "config/database.php",
        f"<?php\nreturn [\n  'mysql' => [\n    'username' => 'root',\n    'password' => '{f.chosen_password()}',\n  ],\n];\n",
    )


@_shape("laravel env")
def _(f: Fake) -> tuple[str, str]:
    return "app/laravel", f"APP_NAME=Shop\nAPP_KEY=base64:{f.base64(32)}\nPUSHER_APP_SECRET={f.hex(20)}\n"


@_shape("terraform variables")
def _(f: Fake) -> tuple[str, str]:
    return (
        "infra/main.tf",
        f'provider "aws" {{\n  region = "eu-west-1"\n  secret_key = "{f.secret(_ALNUM + "+/", 40)}"\n}}\nvariable "db_password" {{\n  default = "{f.chosen_password()}"\n}}\n',
    )


@_shape("terraform state")
def _(f: Fake) -> tuple[str, str]:
    state = {
        "version": 4,
        "terraform_version": "1.6.0",
        "serial": 3,
        "lineage": "x",
        "resources": [
            {
                "type": "aws_db_instance",
                "instances": [{"attributes": {"username": "app", "password": f.password(), "port": 5432}}],
            }
        ],
    }
    return "infra/state.json", json.dumps(state, indent=2)


@_shape("cloudformation")
def _(f: Fake) -> tuple[str, str]:
    return (
        "infra/stack.yaml",
        f"Resources:\n  Db:\n    Type: AWS::RDS::DBInstance\n    Properties:\n      MasterUsername: app\n      MasterUserPassword: {f.password()}\n",
    )


@_shape("kubernetes secret")
def _(f: Fake) -> tuple[str, str]:
    return (
        "k8s/web.yaml",
        f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: web\ntype: Opaque\ndata:\n  username: YWRtaW4=\n  password: {f.base64(15)}\n  blob: {f.base64(33)}\n",
    )


@_shape("kubernetes stringData")
def _(f: Fake) -> tuple[str, str]:
    return (
        "k8s/api.yaml",
        f"kind: Secret\napiVersion: v1\nstringData:\n  config: {f.chosen_password()}\n  other: {f.alnum(24)}\n",
    )


@_shape("kubeconfig")
def _(f: Fake) -> tuple[str, str]:
    return (
        "k8s/admin.conf",
        f"apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://k8s:6443\nusers:\n- name: admin\n  user:\n    client-certificate-data: {Fake(4).base64(300)}\n    client-key-data: {f.base64(600)}\n",
    )


@_shape("kubeconfig token")
def _(f: Fake) -> tuple[str, str]:
    return "k8s/other.conf", f"apiVersion: v1\nkind: Config\nusers:\n- name: ci\n  user:\n    token: {f.alnum(50)}\n"


@_shape("docker config")
def _(f: Fake) -> tuple[str, str]:
    return "home/config.json", json.dumps({"auths": {"registry.example.com": {"auth": f.base64(30)}}}, indent=2)


@_shape("npmrc")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/.npmrc",
        f"registry=https://registry.npmjs.org/\n//registry.npmjs.org/:_authToken={f.uuid()}\n//r.acme.io/:_password={f.base64(18)}\n",
    )


@_shape("yarnrc")
def _(f: Fake) -> tuple[str, str]:
    return "home/yarnrc", f'npmRegistryServer: "https://r.acme.io"\nnpmAuthToken: "{f.alnum(40)}"\n'


@_shape("pypirc")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/.pypirc",
        f"[distutils]\nindex-servers = pypi\n\n[pypi]\nusername = ann\npassword = {f.chosen_password()}\n",
    )


@_shape("netrc")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/.netrc",
        f"machine api.heroku.com\n  login ann@example.com\n  password {f.uuid()}\nmachine ftp.acme.io login ann password {f.chosen_password()}\n",
    )


@_shape("netrc elsewhere")
def _(f: Fake) -> tuple[str, str]:
    return "home/old-logins", f"machine git.acme.io login ann password {f.alnum(20)}\n"


@_shape("pgpass")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/.pgpass",
        f"db.acme.io:5432:app:ann:{f.chosen_password()}\n*:*:*:bob:{f.password().replace(':', '_')}\n",
    )


@_shape("pgpass elsewhere")
def _(f: Fake) -> tuple[str, str]:
    return "home/pg-logins", f"db.acme.io:5432:app:ann:{f.alnum(16)}\nlocalhost:5432:*:bob:{f.alnum(12)}\n"


@_shape("my.cnf")
def _(f: Fake) -> tuple[str, str]:
    return "home/client.cnf", f"[client]\nuser=ann\npassword={f.chosen_password()}\nhost=db\n"


@_shape("aws credentials")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/aws-backup",
        f"[default]\naws_access_key_id = {f.secret(string.ascii_uppercase, 16, 'AK' + 'IA')}\naws_secret_access_key = {f.secret(_ALNUM + '+/', 40)}\naws_session_token = {f.base64(200)}\n",
    )


@_shape("gcp service account")
def _(f: Fake) -> tuple[str, str]:
    account = {
        "type": "service_account",
        "project_id": "acme",
        "private_key_id": f.hex(40),
        "private_key": f.pem("PRIVATE" + " KEY"),
        "client_email": "x@acme.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    return "conf/acme-1234.json", json.dumps(account, indent=2)


@_shape("gcp user credentials")
def _(f: Fake) -> tuple[str, str]:
    return "conf/adc.json", json.dumps(
        {
            "client_id": "764.apps.googleusercontent.com",
            "client_secret": f.alnum(24),
            "refresh_token": f.word(100, "1//0"),
            "type": "authorized_user",
        },
        indent=2,
    )


@_shape("azure service principal")
def _(f: Fake) -> tuple[str, str]:
    return "conf/sp.json", json.dumps(
        {
            "appId": Fake(5).uuid(),
            "displayName": "ci",
            "password": f.alnum(3) + "8Q~" + f.word(34),
            "tenant": Fake(6).uuid(),
        },
        indent=2,
    )


@_shape("azure connection string")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/queue.py",
        f'CONNECTION = "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={f.base64(64)};EndpointSuffix=core.windows.net"\n',
    )


@_shape("azure sas and service bus")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/bus.cs",
        f'var bus = "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey={f.base64(32)}";\n',
    )


@_shape("azure sas url")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/blob.md",
        f"curl 'https://acme.blob.core.windows.net/data?sv=2022-11-02&ss=b&sig={f.alnum(40)}%3D&se=2030-01-01'\n",
    )


@_shape("firebase google-services")
def _(f: Fake) -> tuple[str, str]:
    return "app/gs.json", json.dumps({"client": [{"api_key": [{"current_key": f.word(35, "AI" + "za")}]}]}, indent=2)


@_shape("git config with token")
def _(f: Fake) -> tuple[str, str]:
    return (
        "repo/.git/config",
        f'[core]\n\tbare = false\n[remote "origin"]\n\turl = https://ann:{f.alnum(40)}@git.acme.io/x/y.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    )


@_shape("git config with a token as user")
def _(f: Fake) -> tuple[str, str]:
    return (
        "repo2/config",
        f'[remote "origin"]\n\turl = https://{f.alnum(36, "gh" + "p_")}@github.com/x/y.git\n[http]\n\textraheader = AUTHORIZATION: basic {f.base64(40)}\n',
    )


@_shape("git credentials")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/git-logins",
        f"https://ann:{f.alnum(20)}@github.com\nhttps://bob:{f.chosen_password().replace('#', '%23').replace('?', '%3F')}@gitlab.com\n",
    )


@_shape("gitmodules with a token")
def _(f: Fake) -> tuple[str, str]:
    return (
        ".gitmodules",
        f'[submodule "lib"]\n\tpath = lib\n\turl = https://oauth2:{f.word(20, "gl" + "pat-")}@gitlab.com/x/lib.git\n',
    )


@_shape("pip index with a password")
def _(f: Fake) -> tuple[str, str]:
    return "pip.conf", f"[global]\nindex-url = https://ann:{f.alnum(24)}@pypi.acme.io/simple\n"


@_shape("requirements with a token")
def _(f: Fake) -> tuple[str, str]:
    return (
        "requirements.txt",
        f"requests==2.31\ngit+https://x-access-token:{f.alnum(36, 'gh' + 's_')}@github.com/acme/lib.git\n",
    )


@_shape("database url")
def _(f: Fake) -> tuple[str, str]:
    return "src/db.js", f"const pool = new Pool('postgres://app:{f.alnum(16)}@db.acme.io:5432/app');\n"


@_shape("mongodb url")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/mongo.py",
        f'CLIENT = MongoClient("mongodb+srv://root:{f.chosen_password().replace("#", "x").replace("?", "y")}@cluster0.abcde.mongodb.net/test")\n',
    )


@_shape("redis and amqp urls")
def _(f: Fake) -> tuple[str, str]:
    return (
        "config/worker.yml",
        f"broker: amqp://guest:{f.alnum(18)}@mq:5672//\ncache: redis://:{f.alnum(24)}@redis:6379/0\n",
    )


@_shape("jdbc url")
def _(f: Fake) -> tuple[str, str]:
    return "src/Jdbc.java", f'String url = "jdbc:mysql://db:3306/app?user=root&password={f.alnum(16)}&useSSL=false";\n'


@_shape("sentry dsn with secret")
def _(f: Fake) -> tuple[str, str]:
    return "src/raven.py", f'DSN = "https://{f.of("0123456789abcdef", 32)}:{f.hex(32)}@sentry.acme.io/3"\n'


@_shape("htpasswd")
def _(f: Fake) -> tuple[str, str]:
    return (
        "web/users",
        f"ann:$apr1${f.secret(_ALNUM, 8)}${f.secret(_ALNUM, 22)}\nbob:$2y$05${f.secret(_ALNUM + './', 53)}\ncid:{{SHA}}{f.base64(20)}\n",
    )


@_shape("shadow")
def _(f: Fake) -> tuple[str, str]:
    return (
        "etc/shadow-copy",
        f"root:$6${f.secret(_ALNUM, 16)}${f.secret(_ALNUM + './', 86)}:19000:0:99999:7:::\nann:$y$j9T${f.secret(_ALNUM, 22)}${f.secret(_ALNUM, 43)}:19000:0:99999:7:::\n",
    )


@_shape("sql dump with hashes")
def _(f: Fake) -> tuple[str, str]:
    return (
        "db/users.sql",
        f"CREATE TABLE users (id int, email text, password text);\nINSERT INTO `users` VALUES (1,'ann@acme.io','$2y$10${f.secret(_ALNUM + './', 53)}'),(2,'bob@acme.io','$2b$12${f.secret(_ALNUM + './', 53)}');\n",
    )


@_shape("postgres dump copy")
def _(f: Fake) -> tuple[str, str]:
    return (
        "db/dump.txt",
        f"COPY public.users (id, email, password_hash) FROM stdin;\n1\tann@acme.io\tpbkdf2_sha256$260000${f.alnum(22)}${f.base64(32)}\n2\tbob@acme.io\t$argon2id$v=19$m=65536,t=3,p=4${f.alnum(22)}${f.alnum(43)}\n\\.\n",
    )


@_shape("csv of users")
def _(f: Fake) -> tuple[str, str]:
    return "db/users.csv", f"id,email,password_hash\n1,ann@acme.io,$2a$10${f.secret(_ALNUM + './', 53)}\n"


@_shape("csv of logins")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/chrome.csv",
        f"name,url,username,password\nacme,https://acme.io,ann,{f.chosen_password()}\nbank,https://bank.io,ann,{f.chosen_password()}\n",
    )


@_shape("sql create user")
def _(f: Fake) -> tuple[str, str]:
    return (
        "db/init.sql",
        f"CREATE USER app WITH PASSWORD '{f.chosen_password()}';\nALTER ROLE bob PASSWORD '{f.password()}';\nGRANT ALL ON DATABASE app TO app;\n",
    )


@_shape("mysql identified by")
def _(f: Fake) -> tuple[str, str]:
    return "db/grants.sql", f"CREATE USER 'app'@'%' IDENTIFIED BY '{f.chosen_password()}';\n"


@_shape("ldif")
def _(f: Fake) -> tuple[str, str]:
    return "db/people.ldif", f"dn: uid=ann,ou=people,dc=acme\nuid: ann\nuserPassword: {{SSHA}}{f.base64(24)}\n"


@_shape("curl with bearer")
def _(f: Fake) -> tuple[str, str]:
    return (
        "doc/try.sh",
        f'curl -H "Authorization: Bearer {f.alnum(40)}" https://api.acme.io/v1\ncurl -u ann:{f.alnum(16)} https://api.acme.io\n',
    )


@_shape("http file")
def _(f: Fake) -> tuple[str, str]:
    return (
        "doc/api.http",
        f"GET https://api.acme.io/v1/users\nAuthorization: Basic {f.base64(24)}\nX-Api-Key: {f.alnum(32)}\n",
    )


@_shape("curl cookie jar")
def _(f: Fake) -> tuple[str, str]:
    return (
        "tmp/cookies.txt",
        f"# Netscape HTTP Cookie File\n.acme.io\tTRUE\t/\tTRUE\t1893456000\tsessionid\t{f.lower(32)}\n#HttpOnly_.acme.io\tTRUE\t/\tTRUE\t0\tauth\t{f.hex(64)}\n",
    )


@_shape("recorded cookies")
def _(f: Fake) -> tuple[str, str]:
    return (
        "tests/cassette.yaml",
        f"request:\n  headers:\n    Cookie: session={f.alnum(48)}; theme=dark\nresponse:\n  headers:\n    Set-Cookie: sid={f.hex(40)}; Path=/; HttpOnly\n",
    )


@_shape("har archive")
def _(f: Fake) -> tuple[str, str]:
    return "tmp/log.har", json.dumps(
        {
            "log": {
                "entries": [
                    {
                        "request": {
                            "headers": [
                                {"name": "Authorization", "value": "Bearer " + f.jwt()},
                                {"name": "Cookie", "value": "sid=" + f.hex(40)},
                            ]
                        }
                    }
                ]
            }
        },
        indent=1,
    )


@_shape("postman collection")
def _(f: Fake) -> tuple[str, str]:
    return "doc/api.postman.json", json.dumps(
        {"auth": {"type": "bearer", "bearer": [{"key": "token", "value": f.alnum(40), "type": "string"}]}}, indent=2
    )


@_shape("playwright state")
def _(f: Fake) -> tuple[str, str]:
    return "tests/state.json", json.dumps(
        {"cookies": [{"name": "session", "value": f.alnum(40), "domain": "acme.io", "httpOnly": True}], "origins": []},
        indent=2,
    )


@_shape("query with a token")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/map.html",
        f'<script src="https://maps.acme.io/js?api_key={f.alnum(32)}&v=3"></script>\n<img src="/x?access_token={f.hex(40)}">\n',
    )


@_shape("shada text")
def _(f: Fake) -> tuple[str, str]:
    return (
        "state/nvim/shada/main.shada",
        f"\x02\x04:let $OPENAI_API_KEY = '{f.alnum(48)}'\n\x03export AWS_SECRET_ACCESS_KEY={f.secret(_ALNUM + '+/', 40)}\n",
    )


@_shape("shell history")
def _(f: Fake) -> tuple[str, str]:
    return (
        "backup/hist",
        f"ls\nmysql -u root -p{f.alnum(14)} app\nexport GITHUB_TOKEN={f.alnum(36, 'gh' + 'p_')}\ngit push\n",
    )


@_shape("viminfo")
def _(f: Fake) -> tuple[str, str]:
    return "home/.viminfo", f"# This viminfo file was generated by Vim 9.0.\n:let g:token='{f.alnum(40)}'\n"


@_shape("maven settings")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/settings.xml",
        f"<settings>\n <servers>\n  <server>\n   <id>nexus</id>\n   <username>ann</username>\n   <password>{f.chosen_password()}</password>\n  </server>\n </servers>\n</settings>\n",
    )


@_shape("gradle properties")
def _(f: Fake) -> tuple[str, str]:
    return (
        "gradle.properties",
        f"org.gradle.jvmargs=-Xmx2g\nsigning.keyId=1234ABCD\nsigning.password={f.chosen_password()}\nsonatypePassword={f.alnum(24)}\n",
    )


@_shape("gradle signing")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/build.gradle",
        f"android {{\n  signingConfigs {{\n    release {{\n      storeFile file('x.jks')\n      storePassword '{f.chosen_password()}'\n      keyPassword \"{f.password()}\"\n    }}\n  }}\n}}\n",
    )


@_shape("nuget config")
def _(f: Fake) -> tuple[str, str]:
    return (
        "nuget.config",
        f'<configuration>\n <packageSourceCredentials>\n  <acme>\n   <add key="Username" value="ann" />\n   <add key="ClearTextPassword" value="{f.chosen_password()}" />\n  </acme>\n </packageSourceCredentials>\n</configuration>\n',
    )


@_shape("rails credentials")
def _(f: Fake) -> tuple[str, str]:
    return "config/plain.yml", f"production:\n  secret_key_base: {f.hex(128)}\n  smtp_password: {f.chosen_password()}\n"


@_shape("rails master key")
def _(f: Fake) -> tuple[str, str]:
    return "config/master.key", f.hex(32) + "\n"


@_shape("helm values")
def _(f: Fake) -> tuple[str, str]:
    return (
        "charts/values.yaml",
        f'postgresql:\n  auth:\n    username: app\n    postgresPassword: {f.alnum(16)}\n    password: "{f.chosen_password()}"\nredis:\n  requirepass: {f.alnum(20)}\n',
    )


@_shape("redis conf")
def _(f: Fake) -> tuple[str, str]:
    return "conf/redis.conf", f"port 6379\nrequirepass {f.alnum(32)}\nmasterauth {f.alnum(32)}\n"


@_shape("ansible inventory")
def _(f: Fake) -> tuple[str, str]:
    return (
        "hosts.ini",
        f"[web]\nweb1 ansible_host=10.0.0.4 ansible_user=root ansible_password={f.alnum(14)}\nweb2 ansible_become_pass='{f.chosen_password()}'\n",
    )


@_shape("rclone")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/rc.conf",
        f'[drive]\ntype = drive\nclient_secret = {f.alnum(24)}\ntoken = {{"access_token":"{f.word(120, "ya" + "29.")}","refresh_token":"{f.word(90, "1//0")}"}}\n',
    )


@_shape("filezilla")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/sitemanager.xml",
        f'<FileZilla3>\n <Server>\n  <Host>ftp.acme.io</Host>\n  <User>ann</User>\n  <Pass encoding="base64">{f.base64(14)}</Pass>\n </Server>\n</FileZilla3>\n',
    )


@_shape("sftp config")
def _(f: Fake) -> tuple[str, str]:
    return "conf/upload.json", json.dumps(
        {"type": "sftp", "host": "acme.io", "user": "ann", "password": f.chosen_password(), "port": "22"}, indent=1
    )


@_shape("mutt and msmtp")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/mail",
        f'account acme\nhost smtp.acme.io\nuser ann\npassword {f.alnum(16)}\nset imap_pass = "{f.chosen_password()}"\n',
    )


@_shape("irc and weechat")
def _(f: Fake) -> tuple[str, str]:
    return "home/irc.conf", f'[server]\nlibera.sasl_username = "ann"\nlibera.sasl_password = "{f.chosen_password()}"\n'


@_shape("wpa supplicant")
def _(f: Fake) -> tuple[str, str]:
    return "etc/wpa.conf", f'network={{\n  ssid="home"\n  psk="{f.chosen_password()}"\n}}\n'


@_shape("network manager")
def _(f: Fake) -> tuple[str, str]:
    return "etc/home.nmconnection", f"[wifi-security]\nkey-mgmt=wpa-psk\npsk={f.alnum(20)}\n"


@_shape("openvpn inline")
def _(f: Fake) -> tuple[str, str]:
    lines = "\n".join(f.hex(32) for _ in range(16))
    dashes = "-" * 5
    return (
        "net/client.conf",
        f"client\ndev tun\n<tls-auth>\n{dashes}BEGIN OpenVPN Static key V1{dashes}\n{lines}\n{dashes}END OpenVPN Static key V1{dashes}\n</tls-auth>\n",
    )


@_shape("vault output")
def _(f: Fake) -> tuple[str, str]:
    return (
        "notes/vault.txt",
        f"Unseal Key 1: {f.base64(33)}\nUnseal Key 2: {f.base64(33)}\n\nInitial Root Token: {f.alnum(24, 'hv' + 's.')}\n",
    )


@_shape("bitcoin wallet words")
def _(f: Fake) -> tuple[str, str]:
    return "home/wallet.json", json.dumps(
        {
            "address": f.of("0123456789abcdef", 40),
            "crypto": {"cipher": "aes-128-ctr", "ciphertext": f.hex(64), "kdf": "scrypt", "mac": f.hex(64)},
            "version": 3,
        }
    )


@_shape("ethereum private key")
def _(f: Fake) -> tuple[str, str]:
    return (
        "hardhat.config.js",
        f'module.exports = {{ networks: {{ main: {{ accounts: ["0x{f.hex(64)}"], privateKey: "{f.hex(64)}" }} }} }};\n',
    )


@_shape("mnemonic")
def _(f: Fake) -> tuple[str, str]:
    words = "abandon ability able about above absent absorb abstract absurd abuse access accident acid acoustic".split()
    phrase = " ".join(words[k] for k in (3, 1, 7, 5, 2, 11, 9, 0, 4, 8, 6, 12))
    f.values.append(phrase)
    return "app/wallet.env", f'MNEMONIC="{phrase}"\nCHAIN=1\n'


@_shape("github actions with a literal")
def _(f: Fake) -> tuple[str, str]:
    return ".github/workflows/x.yml", f"env:\n  NPM_TOKEN: {f.uuid()}\n  SONAR_TOKEN: {f.hex(40)}\njobs: {{}}\n"


@_shape("travis and circle literal")
def _(f: Fake) -> tuple[str, str]:
    return ".travis.yml", f"env:\n  - COVERALLS_REPO_TOKEN={f.alnum(32)}\nscript: make\n"


@_shape("jenkins credentials")
def _(f: Fake) -> tuple[str, str]:
    return (
        "jenkins/credentials.xml",
        f"<list>\n <com.cloudbees.UsernamePasswordCredentialsImpl>\n  <username>ann</username>\n  <password>{{{f.base64(48)}}}</password>\n </com.cloudbees.UsernamePasswordCredentialsImpl>\n <secret>{f.chosen_password()}</secret>\n</list>\n",
    )


@_shape("gh hosts")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/hosts.yml",
        f"github.com:\n    user: ann\n    oauth_token: {f.alnum(36, 'gh' + 'o_')}\n    git_protocol: ssh\n",
    )


@_shape("copilot hosts")
def _(f: Fake) -> tuple[str, str]:
    return "home/apps.json", json.dumps(
        {"github.com:Iv1.b507": {"user": "ann", "oauth_token": f.alnum(36, "gh" + "u_")}}
    )


@_shape("codex auth")
def _(f: Fake) -> tuple[str, str]:
    return "home/login.json", json.dumps(
        {
            "OPENAI_API_KEY": None,
            "tokens": {"id_token": f.jwt(), "access_token": f.jwt(), "refresh_token": f.word(60, "rt_")},
        },
        indent=2,
    )


@_shape("cargo credentials")
def _(f: Fake) -> tuple[str, str]:
    return "home/cargo", f'[registry]\ntoken = "{f.alnum(32, "ci" + "o")}"\n'


@_shape("composer auth")
def _(f: Fake) -> tuple[str, str]:
    return "home/composer.json", json.dumps(
        {
            "http-basic": {"repo.acme.io": {"username": "ann", "password": f.alnum(32)}},
            "github-oauth": {"github.com": f.alnum(36, "gh" + "p_")},
        },
        indent=2,
    )


@_shape("bundler config")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/bundle",
        f'---\nBUNDLE_GEMS__CONTRIBSYS__COM: "{f.hex(8)}:{f.hex(8)}"\nBUNDLE_RUBYGEMS__PKG__GITHUB__COM: "ann:{f.alnum(36, "gh" + "p_")}"\n',
    )


@_shape("s3cmd")
def _(f: Fake) -> tuple[str, str]:
    return "home/s3", f"[default]\naccess_key = {f.upper(20)}\nsecret_key = {f.secret(_ALNUM + '+/', 40)}\n"


@_shape("twilio in source")
def _(f: Fake) -> tuple[str, str]:
    return "src/sms.py", f'ACCOUNT_SID = "AC{f.of("0123456789abcdef", 32)}"\nAUTH_TOKEN = "{f.hex(32)}"\n'


@_shape("mqtt and homeassistant")
def _(f: Fake) -> tuple[str, str]:
    return (
        "home/secrets-ha.yaml",
        f'mqtt_password: {f.chosen_password()}\nwifi_password: "{f.password()}"\napi_encryption_key: {f.base64(32)}\n',
    )


@_shape("esp32 source")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/main.ino",
        f'const char* ssid = "home";\nconst char* password = "{f.chosen_password()}";\n#define WIFI_PASS "{f.password()}"\n',
    )


@_shape("python call")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/call.py",
        f'db = connect(host="db", user="app", password="{f.chosen_password()}")\nclient = Client(api_key="{f.alnum(40)}")\n',
    )


@_shape("command line flag")
def _(f: Fake) -> tuple[str, str]:
    return "run.sh", f"#!/bin/sh\nweb --port 80 --password '{f.chosen_password()}' --token={f.alnum(32)}\n"


@_shape("markdown table of logins")
def _(f: Fake) -> tuple[str, str]:
    return (
        "doc/servers.md",
        f"# Servers\n\nUser: admin\nPassword: {f.chosen_password()}\n\n| host | root password |\n|---|---|\n",
    )


@_shape("plist")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/Info.plist",
        f"<plist><dict>\n<key>API_KEY</key>\n<string>{f.word(39)}</string>\n<key>ClientSecret</key><string>{f.alnum(32)}</string>\n</dict></plist>\n",
    )


@_shape("android strings")
def _(f: Fake) -> tuple[str, str]:
    return (
        "res/values/strings.xml",
        f'<resources>\n<string name="app_name">X</string>\n<string name="facebook_app_secret">{f.hex(32)}</string>\n<string name="api_key">{f.alnum(32)}</string>\n</resources>\n',
    )


@_shape("swift and kotlin")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/Api.kt",
        f'object Api {{\n  const val API_KEY = "{f.alnum(32)}"\n  val clientSecret: String = "{f.alnum(40)}"\n}}\n',
    )


@_shape("rust constant")
def _(f: Fake) -> tuple[str, str]:
    return "src/api.rs", f'pub const API_SECRET: &str = "{f.alnum(40)}";\nlet token = String::from("{f.hex(40)}");\n'


@_shape("hcl vault")
def _(f: Fake) -> tuple[str, str]:
    return (
        "infra/vault.hcl",
        f'storage "consul" {{\n  token = "{f.uuid()}"\n}}\nseal "transit" {{\n  token = "{f.alnum(24, "s" + ".")}"\n}}\n',
    )


@_shape("consul acl json")
def _(f: Fake) -> tuple[str, str]:
    return "infra/consul.json", json.dumps(
        {"acl": {"tokens": {"master": f.uuid(), "agent_token": f.uuid()}}, "encrypt": f.base64(32)}, indent=2
    )


@_shape("elasticsearch yml")
def _(f: Fake) -> tuple[str, str]:
    return (
        "conf/kibana.yml",
        f'elasticsearch.username: "kibana"\nelasticsearch.password: "{f.alnum(20)}"\nxpack.security.encryptionKey: "{f.alnum(32)}"\n',
    )


@_shape("grafana ini")
def _(f: Fake) -> tuple[str, str]:
    return (
        "conf/grafana.ini",
        f"[security]\nadmin_user = admin\nadmin_password = {f.chosen_password()}\nsecret_key = {f.alnum(20)}\n",
    )


@_shape("magento env.php")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/etc/env.php",
        f"<?php\nreturn [\n 'crypt' => ['key' => '{f.hex(32)}'],\n 'db' => ['password' => '{f.password()}'],\n];\n",
    )


@_shape("strapi env")
def _(f: Fake) -> tuple[str, str]:
    return (
        "app/strapi",
        f"HOST=0.0.0.0\nAPP_KEYS={f.base64(16)},{f.base64(16)}\nAPI_TOKEN_SALT={f.base64(16)}\nADMIN_JWT_SECRET={f.base64(16)}\n",
    )


@_shape("nextauth env")
def _(f: Fake) -> tuple[str, str]:
    return "web/local", f"NEXTAUTH_SECRET={f.base64(32)}\nGITHUB_CLIENT_SECRET={f.hex(40)}\nNEXT_PUBLIC_NAME=Shop\n"


@_shape("flask config")
def _(f: Fake) -> tuple[str, str]:
    return (
        "web/app.py",
        f'app = Flask(__name__)\napp.config["SECRET_KEY"] = "{f.hex(48)}"\napp.secret_key = b"{f.alnum(24)}"\n',
    )


@_shape("express session")
def _(f: Fake) -> tuple[str, str]:
    return (
        "web/server.js",
        f"app.use(session({{ secret: '{f.alnum(32)}', resave: false }}));\nconst token = jwt.sign(user, '{f.alnum(40)}');\n",
    )


@_shape("dotnet user secrets")
def _(f: Fake) -> tuple[str, str]:
    return "home/usersecrets.json", json.dumps(
        {"Authentication:Google:ClientSecret": f.alnum(24), "Smtp:Password": f.chosen_password()}, indent=2
    )


@_shape("vs code settings")
def _(f: Fake) -> tuple[str, str]:
    return (
        ".vscode/settings.json",
        '{\n  // mine\n  "sqltools.connections": [{ "username": "sa", "password": "'
        + f.chosen_password()
        + '" }],\n  "x.apiKey": "'
        + f.alnum(40)
        + '",\n}\n',
    )


@_shape("mcp json")
def _(f: Fake) -> tuple[str, str]:
    return ".mcp.json", json.dumps(
        {
            "mcpServers": {
                "gh": {
                    "command": "x",
                    "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": f.alnum(36, "gh" + "p_")},
                    "headers": {"Authorization": "Bearer " + f.alnum(30)},
                }
            }
        },
        indent=2,
    )


@_shape("diff of an env file")
def _(f: Fake) -> tuple[str, str]:
    return (
        "patches/1.patch",
        f"--- a/app/x\n+++ b/app/x\n@@ -1,2 +1,2 @@\n PORT=1\n-API_TOKEN={f.hex(40)}\n+API_TOKEN={f.hex(40)}\n",
    )


@_shape("log with a token")
def _(f: Fake) -> tuple[str, str]:
    return (
        "logs/app.log",
        f'2024-01-01 INFO start\n2024-01-01 DEBUG headers={{"Authorization": "Bearer {f.jwt()}"}}\n2024-01-01 DEBUG login password={f.chosen_password()}\n',
    )


@_shape("notebook output")
def _(f: Fake) -> tuple[str, str]:
    return "nb/x.ipynb", json.dumps(
        {
            "cells": [
                {"cell_type": "code", "source": [f'openai.api_key = "{f.alnum(48, "s" + "k-")}"\n'], "outputs": []}
            ],
            "nbformat": 4,
        },
        indent=1,
    )


# ---- names and values that are not next to each other on one line


@_shape("name and value in fields of their own")
def _(f: Fake) -> tuple[str, str]:
    return (
        "k8s/app.yaml",
        f"env:\n  - name: DB_PASSWORD\n    value: {f.chosen_password()}\n  - name: PORT\n    value: 80\n",
    )


@_shape("output of terraform as JSON")
def _(f: Fake) -> tuple[str, str]:
    return "out.json", json.dumps({"db_password": {"sensitive": True, "type": "string", "value": f.chosen_password()}})


@_shape("value below its name")
def _(f: Fake) -> tuple[str, str]:
    return "conf/a.yml", f"port: 80\napi_key: >-\n  {f.alnum(40)}\n"


@_shape("list below its name")
def _(f: Fake) -> tuple[str, str]:
    return "conf/b.yml", f"tokens:\n  - {f.alnum(32)}\n  - {f.alnum(32)}\n"


@_shape("list of keys")
def _(f: Fake) -> tuple[str, str]:
    return "conf/c.json", json.dumps({"apiKeys": [f.alnum(32)]})


@_shape("value in brackets on the next line")
def _(f: Fake) -> tuple[str, str]:
    return "src/a.py", f'api_key = (\n    "{f.alnum(40)}"\n)\n'


@_shape("default of a field")
def _(f: Fake) -> tuple[str, str]:
    return "src/b.py", f'class S(Settings):\n    secret_key: str = Field(default="{f.alnum(40)}")\n'


@_shape("default of a variable in a call")
def _(f: Fake) -> tuple[str, str]:
    return "src/c.py", f'TOKEN = os.getenv("TOKEN", "{f.hex(40)}")\n'


@_shape("default of a variable by an operator")
def _(f: Fake) -> tuple[str, str]:
    return (
        "src/d.js",
        f"const p = process.env.DB_PASSWORD ?? '{f.chosen_password()}';\nconst s = process.env.JWT_SECRET || '{f.alnum(32)}';\n",
    )


@_shape("name of a provider and key")
def _(f: Fake) -> tuple[str, str]:
    return "src/e.py", f"os.environ['ACME_KEY'] = '{f.alnum(40)}'\n"


@_shape("build field of Android")
def _(f: Fake) -> tuple[str, str]:
    return "app/build.gradle.kts", f'buildConfigField("String", "API_KEY", "\\"{f.alnum(40)}\\"")\n'


@_shape("arguments of a server")
def _(f: Fake) -> tuple[str, str]:
    return "mcp.json", json.dumps({"command": "npx", "args": ["--api-key", f.alnum(40)]})


@_shape("login by position")
def _(f: Fake) -> tuple[str, str]:
    return "src/f.py", f"smtp.login('a@example.org', '{f.password()}')\nget(u, auth=('a', '{f.password()}'))\n"


@_shape("columns of an insert")
def _(f: Fake) -> tuple[str, str]:
    rows = f"(1, 'ann', '{f.chosen_password()}'), (2, 'bo', '{f.chosen_password()}')"
    return "db/a.sql", " ".join(("INSERT INTO", "`u` (`id`, `name`, `password`) VALUES", f"{rows};\n"))


@_shape("columns of a copy")
def _(f: Fake) -> tuple[str, str]:
    return "db/b.sql", f"COPY public.u (id, api_token) FROM stdin;\n1\t{f.hex(40)}\n\\.\n"


@_shape("column of a table in Markdown")
def _(f: Fake) -> tuple[str, str]:
    return "doc/a.md", f"| system | user | password |\n|---|---|---|\n| forge | ann | {f.chosen_password()} |\n"


@_shape("columns of a file of keys")
def _(f: Fake) -> tuple[str, str]:
    return "keys.csv", f"Access key ID,Secret access key\n{f.of(_UPPER, 20)},{f.base64(30)}\n"


@_shape("password in a sentence")
def _(f: Fake) -> tuple[str, str]:
    return "notes/a.md", f"Your new password is: {f.chosen_password()}\nmot de passe : {f.chosen_password()}\n"


@_shape("name in another alphabet")
def _(f: Fake) -> tuple[str, str]:
    return "conf/es.yml", f"usuario: ann\ncontraseña: {f.chosen_password()}\n"


@_shape("key of a provider nobody knows")
def _(f: Fake) -> tuple[str, str]:
    return "src/g.ts", f'export const value = "acme_live_{f.alnum(44)}";\n'


@_shape("private key in base64")
def _(f: Fake) -> tuple[str, str]:
    encoded = base64.b64encode(f.pem("RSA PRIVATE" + " KEY").encode()).decode()
    f.values[:] = [encoded[200:300]]
    return "deploy/vars.sh", f"export TLS_B64={encoded}\n"


@_shape("secret of Kubernetes as JSON")
def _(f: Fake) -> tuple[str, str]:
    return "k8s/a.json", json.dumps({"apiVersion": "v1", "kind": "Secret", "data": {"x": f.base64(30)}})


@_shape("two cookies in a header")
def _(f: Fake) -> tuple[str, str]:
    return "src/h.ts", f'const h = "Cookie: lang=de; sessionid={f.lower(32)}; csrftoken={f.alnum(32)}";\n'


@_shape("logins on command lines")
def _(f: Fake) -> tuple[str, str]:
    return (
        "notes/b.sh",
        f"docker login -u ci -p {f.alnum(20)} r.example.org\nredis-cli -a {f.alnum(20)} ping\naws configure set aws_secret_access_key {f.alnum(40)}\n",
    )


@_shape("passwords of installers")
def _(f: Fake) -> tuple[str, str]:
    return "ks.cfg", f"rootpw --plaintext {f.password()}\n"
