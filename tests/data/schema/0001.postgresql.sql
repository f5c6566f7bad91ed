CREATE TABLE adjudge_ledger (
    seq BIGINT NOT NULL,
    id TEXT NOT NULL,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    payload BYTEA,
    payload_hash TEXT NOT NULL,
    prev TEXT NOT NULL,
    hash TEXT NOT NULL,
    signature TEXT,
    PRIMARY KEY (seq),
    UNIQUE (id)
);

CREATE TABLE adjudge_approvals (
    id TEXT NOT NULL,
    status TEXT NOT NULL,
    expires_at TEXT,
    overrides INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE adjudge_pending (
    approval TEXT NOT NULL,
    gate TEXT NOT NULL,
    idempotency TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    decision TEXT NOT NULL,
    used_at TEXT,
    used_seq BIGINT,
    PRIMARY KEY (approval),
    UNIQUE (idempotency)
);

CREATE TABLE adjudge_pending_votes (
    approval TEXT NOT NULL,
    by TEXT NOT NULL,
    seq INTEGER NOT NULL,
    approved INTEGER NOT NULL,
    at TEXT NOT NULL,
    final_at TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (approval, by)
);

CREATE TABLE adjudge_votes (
    approval TEXT NOT NULL,
    by TEXT NOT NULL,
    seq INTEGER NOT NULL,
    approved INTEGER NOT NULL,
    at TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (approval, by),
    FOREIGN KEY(approval) REFERENCES adjudge_approvals (id)
);

CREATE TABLE adjudge_tools (
    id TEXT NOT NULL,
    tier TEXT NOT NULL,
    status TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE adjudge_tool_standings (
    tool TEXT NOT NULL,
    claimed_until TEXT,
    body TEXT NOT NULL,
    PRIMARY KEY (tool),
    FOREIGN KEY(tool) REFERENCES adjudge_tools (id)
);

CREATE TABLE adjudge_server_accounts (
    name TEXT NOT NULL,
    password TEXT NOT NULL,
    scopes TEXT NOT NULL,
    gates TEXT,
    approver TEXT,
    rater TEXT,
    created_at TEXT NOT NULL,
    disabled_at TEXT,
    PRIMARY KEY (name)
);

CREATE TABLE adjudge_server_answers (
    digest TEXT NOT NULL,
    request TEXT NOT NULL,
    status INTEGER,
    body BYTEA,
    created_at TEXT NOT NULL,
    PRIMARY KEY (digest)
);

CREATE TABLE adjudge_server_keys (
    prefix TEXT NOT NULL,
    digest TEXT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    gates TEXT,
    approver TEXT,
    rater TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT,
    PRIMARY KEY (prefix)
);

CREATE TABLE adjudge_server_secrets (
    name TEXT NOT NULL,
    secret TEXT NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE adjudge_server_sessions (
    digest TEXT NOT NULL,
    account TEXT NOT NULL,
    csrf_token TEXT NOT NULL,
    created_at TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    PRIMARY KEY (digest),
    FOREIGN KEY(account) REFERENCES adjudge_server_accounts (name)
);

CREATE TABLE adjudge_ledger_columns (
    seq BIGINT,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    state TEXT,
    gate TEXT,
    execution TEXT,
    outcome TEXT,
    judge TEXT,
    score DOUBLE PRECISION,
    decided_by TEXT,
    ident TEXT,
    result TEXT,
    approval TEXT,
    duration_ms DOUBLE PRECISION,
    cost_usd DOUBLE PRECISION,
    PRIMARY KEY (seq)
);

CREATE TABLE adjudge_ledger_names (
    seq BIGINT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL
);

CREATE TABLE adjudge_ledger_words (
    seq BIGINT NOT NULL,
    words TEXT NOT NULL,
    PRIMARY KEY (seq)
);
