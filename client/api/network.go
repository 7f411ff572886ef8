package api

import "time"

// Network is a network after one block, as one of its validators sees it.
type Network struct {
	Address      string        `json:"address"` // of the interface that was asked
	ChainID      string        `json:"chain_id"`
	Height       int64         `json:"height"`
	Time         time.Time     `json:"block_time"`
	CatchingUp   bool          `json:"catching_up"`   // the validator is behind the others
	Peers        int           `json:"peers"`         // processes of the chain that the validator is connected to
	Window       int64         `json:"window_blocks"` // latest blocks over which missed ones are counted
	Validators   []Validator   `json:"validators"`
	Participants []Participant `json:"participants"`
	Orders       []Order       `json:"orders"` // that wait
	Runs         []NetworkRun  `json:"runs"`   // that are not over
	Links        []Link        `json:"links"`  // between participants
}

// Validator is a voting validator.
type Validator struct {
	Address string `json:"address"` // of its votes: hexadecimal
	Power   int64  `json:"power"`
	Signed  bool   `json:"signed"`        // its vote is in the commit of the block
	Missed  int64  `json:"missed_blocks"` // of the window, that it did not sign
}

// Validators are all of a network.
type Validators struct {
	Height     int64       `json:"height"`
	Window     int64       `json:"window_blocks"` // latest blocks over which missed ones are counted
	Validators []Validator `json:"validators"`
}

// Participant is an account that works for a network.
type Participant struct {
	ID    string   `json:"id"`
	Roles []string `json:"roles"` // none: it has an address only
	// uzen per 10^15 operations that it offers work for; 0 if it takes other coins alone
	Price  uint64   `json:"price"`
	Offers bool     `json:"offers"` // whether it does
	Stake  uint64   `json:"stake_uzen"`
	Jailed bool     `json:"jailed"`
	Jobs   []string `json:"jobs"` // that it is an active member of
	Device string   `json:"device"`
	Class  string   `json:"class"`          // as measured: unrated, cpu, apple, consumer, professional or datacentre
	Rate   uint64   `json:"rate"`           // operations a second; 0: not measured
	Asks   []Ask    `json:"asks,omitempty"` // its prices in other coins
	// stake of other accounts that has a share of its pay
	Delegated uint64 `json:"delegated_uzen,omitempty"`
}

// Ask is a price in a coin other than ZEN.
type Ask struct {
	Price uint64 `json:"price"` // grains of the coin per 10^15 operations
	Coin  *Coin  `json:"coin"`
}

// Workers are the participants of a network.
type Workers struct {
	Height  int64         `json:"height"`
	Workers []Participant `json:"workers"`
}

// Order is an order that waits.
type Order struct {
	Job    string `json:"job"`
	Why    string `json:"why"`
	Budget uint64 `json:"budget_uzen"`
	Coin   *Coin  `json:"coin,omitempty"` // of the budget; absent: ZEN
}

// NetworkRun is a run that is not over, as the chain knows it.
type NetworkRun struct {
	Job       string `json:"job"`
	Phase     string `json:"phase"`
	Round     uint32 `json:"round"`
	Rounds    uint32 `json:"rounds"`
	Open      int    `json:"open_rounds"` // attested and not final
	Workers   int    `json:"workers"`
	Verifiers int    `json:"verifiers"`
	Budget    uint64 `json:"budget_uzen"`
	Paid      uint64 `json:"paid_uzen"`      // with the fee
	Coin      *Coin  `json:"coin,omitempty"` // of budget and pay; absent: ZEN
}

// Block is a block of the chain.
type Block struct {
	Height   int64     `json:"height"`
	Time     time.Time `json:"time"`
	Hash     string    `json:"hash"`
	AppHash  string    `json:"app_hash"` // of the state before it
	Proposer string    `json:"proposer"`
	Txs      []Tx      `json:"txs"`
	Signed   int       `json:"signed"` // votes in its commit
	Bytes    int       `json:"bytes"`
}

// Blocks is a page of blocks, the latest first.
type Blocks struct {
	Blocks  []Block `json:"blocks"`
	HasMore bool    `json:"has_more"`
	After   string  `json:"after,omitempty"`
}

// Tx is a transaction in a block.
type Tx struct {
	Hash     string   `json:"hash"`
	Height   int64    `json:"height"`
	Code     uint32   `json:"code"` // 0: executed
	Log      string   `json:"log,omitempty"`
	GasUsed  int64    `json:"gas_used"`
	Messages []string `json:"messages"` // their types
	Signers  []string `json:"signers"`
	Bytes    int      `json:"bytes"`

	Fee       uint64     `json:"fee_uzen"` // that its signers offered for it
	Memo      string     `json:"memo"`
	Transfers []Transfer `json:"transfers"` // coins that its messages send
}

// Transfer is coins that a message sends.
type Transfer struct {
	From string `json:"from"`
	To   string `json:"to"`
	Uzen uint64 `json:"uzen"`
}

// Account is an account, and what it does and waits for.
type Account struct {
	Address string     `json:"address"`
	Balance uint64     `json:"balance_uzen"`
	Stake   uint64     `json:"stake_uzen"`
	Slashed uint64     `json:"slashed_uzen"`
	Jailed  bool       `json:"jailed"`
	Reasons []Standing `json:"reasons"`
	// the one reason for its pay, or for none, as far as the chain tells: its code is one of a closed list
	Now *Reason `json:"now,omitempty"`
	// by the days of the blocks, the latest first
	Earned []EarnedDay `json:"earned"`
}

// EarnedDay has the receipts and losses of an account on a day.
type EarnedDay struct {
	Day          string `json:"day"` // such as 2026-11-25, in UTC; "": before the blocks that the validator keeps
	ReceivedUzen uint64 `json:"received_uzen"`
	LostUzen     uint64 `json:"lost_uzen"` // of the stake
	Receipts     int    `json:"receipts"`
	Unpaid       int    `json:"unpaid"` // receipts of nothing
}

// Standing is something that an account does or waits for in a run.
type Standing struct {
	Code  string `json:"code"`
	Kind  string `json:"kind"` // works, waits, blocked or over
	Job   string `json:"job,omitempty"`
	Round uint32 `json:"round,omitempty"`
	Text  string `json:"text"`
	Until int64  `json:"until,omitempty"` // height of a deadline
	Do    string `json:"do,omitempty"`
}

// Health is whether a server, and what it serves, works.
type Health struct {
	Status string        `json:"status"` // ok or degraded
	Checks []HealthCheck `json:"checks"`
	Uptime float64       `json:"uptime_seconds"`
}

// HealthCheck is one thing that was looked at.
type HealthCheck struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Version is the version of the server.
type Version struct {
	Version  string `json:"version"`
	API      string `json:"api"`      // v1
	Numerics int    `json:"numerics"` // version of the bits of the operators; 0: not known
	Go       string `json:"go"`
	Submits  bool   `json:"submits"` // whether jobs can be submitted here
	Network  bool   `json:"network"` // whether a network is shown
	Auth     bool   `json:"auth"`    // whether a bearer token is needed
	Orders   bool   `json:"orders"`  // whether submitted jobs are ordered on the network, and not trained here
}

// Problem is an error, as RFC 9457 has it: application/problem+json.
type Problem struct {
	Type      string         `json:"type"`   // about:blank
	Title     string         `json:"title"`  // of the status
	Status    int            `json:"status"` // of the answer
	Code      string         `json:"code"`   // stable
	Detail    string         `json:"detail"` // what and why
	Fix       string         `json:"fix,omitempty"`
	RequestID string         `json:"request_id"`
	Retryable bool           `json:"retryable"`
	Problems  []ProblemPlace `json:"problems,omitempty"` // of a job file
}

// ProblemPlace is one error of a job file, at its place.
type ProblemPlace struct {
	Code  string `json:"code"`
	Place string `json:"place,omitempty"` // file:line:column
	What  string `json:"what"`
	Why   string `json:"why,omitempty"`
	Fix   string `json:"fix,omitempty"`
}
