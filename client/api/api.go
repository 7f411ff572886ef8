// Package api holds the wire types of the REST API under /v1: what a server of web/ answers, and what clients in any
// language read. They are plain structs; docs/api.md says how they are asked for, and /openapi.json is made from them
// and from their comments.
//
// Amounts are in uzen (1 ZEN = 1 000 000 uzen), or, of a value that has a coin, in grains of this coin; losses in nats
// a token, times in RFC 3339, sizes in bytes. Rounds are counted from 1: round 0 is the checkpoint before training. The
// package decides nothing and imports nothing of a network.
package api

import (
	"fmt"
	"time"

	"github.com/starling-network/starling/protocol/coin"
)

// Job is a training run as one line of a list, with its totals so far.
type Job struct {
	// by which the server knows it: the name of its folder, or of its job on a network
	ID string `json:"id"`
	// identifier of the work, the digest of its specification
	Job    string `json:"job"`
	Name   string `json:"name"`             // that its file gives
	Folder string `json:"folder,omitempty"` // its folder, relative to the working directory of the server
	// run, simulation, or network for a job known from the chain only
	Kind string `json:"kind"`
	// running, stopped, done or halted; of a submitted job also queued or failed
	State  string  `json:"state"`
	Reason *Reason `json:"reason,omitempty"` // why it is in a state other than done
	// of a running job: assigning, training, attesting, settling
	Phase   string `json:"phase,omitempty"`
	Step    int    `json:"step"`    // inner steps in attested rounds
	Steps   int    `json:"steps"`   // planned; 0: not known
	Round   int    `json:"round"`   // attested rounds
	Rounds  int    `json:"rounds"`  // planned; 0: not known
	Workers int    `json:"workers"` // active
	Tokens  uint64 `json:"tokens"`  // trained so far
	// in the latest round, of the whole run once it is done; 0: not measured
	TokensPerSecond float64     `json:"tokens_per_second"`
	Loss            *float64    `json:"loss,omitempty"`      // mean of the latest round
	EvalLoss        *float64    `json:"eval_loss,omitempty"` // latest on held-out data
	FirstEvalLoss   *float64    `json:"first_eval_loss,omitempty"`
	BitsPerByte     *float64    `json:"bits_per_byte,omitempty"` // eval_loss, whatever the tokens are
	PaidUzen        uint64      `json:"paid_uzen"`               // so far, net
	FeeUzen         uint64      `json:"fee_uzen"`
	RefundedUzen    uint64      `json:"refunded_uzen"`
	BudgetUzen      uint64      `json:"budget_uzen"`
	SlashedUzen     uint64      `json:"slashed_uzen"`
	Coin            *Coin       `json:"coin,omitempty"` // of the budget and what it paid; absent: ZEN
	Audits          AuditCounts `json:"audits"`
	Disputes        int         `json:"disputes"`
	BytesUp         uint64      `json:"bytes_up"` // by all workers
	BytesDown       uint64      `json:"bytes_down"`
	Seconds         float64     `json:"seconds"`              // that its rounds took
	SecondsLeft     float64     `json:"seconds_left"`         // estimated; 0: not known
	StateRoot       string      `json:"state_root,omitempty"` // of the last attested checkpoint
	Started         time.Time   `json:"started,omitzero"`     // when its folder was made
	Updated         time.Time   `json:"updated,omitzero"`     // of the last change
	Facts           []Fact      `json:"facts,omitempty"`      // model, data and strategy, for people
	Spark           []float64   `json:"spark,omitempty"`      // training loss, at most 48 points, for a thumbnail
	// of a simulation: share of the workers' time that went into accepted units
	Utilisation float64 `json:"utilisation,omitempty"`
	Parties     []Party `json:"parties,omitempty"` // of a simulation
	Pushes      []Push  `json:"pushes,omitempty"`  // copies of its model in stores outside of the network
}

// Push is a copy of the model of a run, or of a checkpoint of it, in a store outside of the network.
type Push struct {
	To      string    `json:"to"`                // target, such as s3://BUCKET/PREFIX
	From    string    `json:"from,omitempty"`    // folder of the run that is copied; "": the run itself
	State   string    `json:"state"`             // waiting, sending, done or failed
	Files   int       `json:"files"`             // 0: not counted yet
	Bytes   int64     `json:"bytes"`             // of all files
	Sent    int64     `json:"sent_bytes"`        // that the store has
	Address string    `json:"address,omitempty"` // where the copy is, once it is there
	Reason  *Reason   `json:"reason,omitempty"`  // why the latest try failed
	Updated time.Time `json:"updated,omitzero"`
}

// Reason is a cause, for programs and for people.
type Reason struct {
	Code string `json:"code"`           // stable
	Text string `json:"text"`           // a sentence
	Next string `json:"next,omitempty"` // what to do
}

// Fact is a named value for people.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// AuditCounts counts audits: drawn = passed + failed + moot + missed.
type AuditCounts struct {
	Drawn  int `json:"drawn"`  // whose receipts are issued
	Passed int `json:"passed"` // that found the same bits
	Failed int `json:"failed"` // that found a fault
	Moot   int `json:"moot"`   // that were settled otherwise before they were answered
	Missed int `json:"missed"` // that were not answered, or not rightly
}

// String says for people how many audits were drawn, and how they ended.
func (c AuditCounts) String() string {
	if c.Drawn == 0 {
		return "none"
	}
	text := fmt.Sprintf("%d drawn: %d the same bits", c.Drawn, c.Passed)
	for _, more := range []struct {
		n    int
		text string
	}{{c.Failed, "a fault found"}, {c.Moot, "moot"}, {c.Missed, "not answered"}} {
		if more.n > 0 {
			text += fmt.Sprintf(", %d %s", more.n, more.text)
		}
	}
	return text
}

// Party has the traffic and pay of a party of a simulation.
type Party struct {
	Name          string  `json:"name"`
	BytesUp       uint64  `json:"bytes_up"`
	BytesDown     uint64  `json:"bytes_down"`
	WorkedSeconds float64 `json:"worked_seconds"`
	PaidUzen      uint64  `json:"paid_uzen"`
	SlashedUzen   uint64  `json:"slashed_uzen"`
	Out           string  `json:"out,omitempty"` // why it had to leave
}

// JobList is a page of jobs, the latest first.
type JobList struct {
	Jobs    []Job  `json:"jobs"`
	HasMore bool   `json:"has_more"`
	After   string `json:"after,omitempty"` // cursor of the next page
}

// Metric is one record of metrics.jsonl: the mean over the workers of an inner step, or, with kind round, a round.
type Metric struct {
	Kind        string   `json:"kind"` // step or round
	Round       uint32   `json:"round"`
	Step        uint32   `json:"step"` // inner steps done
	Loss        float64  `json:"loss"`
	EvalLoss    *float64 `json:"eval_loss,omitempty"`
	BitsPerByte *float64 `json:"bits_per_byte,omitempty"` // eval_loss, whatever the tokens are
	// by an evaluation besides the loss, on held-out examples: of pairs of answers their accuracy and their margin
	Measured        map[string]float64 `json:"measured,omitempty"`
	LearningRate    float64            `json:"learning_rate,omitempty"`
	Tokens          uint64             `json:"tokens"` // trained since the beginning of the job
	TokensPerSecond float64            `json:"tokens_per_second,omitempty"`
	BytesUp         uint64             `json:"bytes_up,omitempty"`   // sent by all workers in the round
	BytesDown       uint64             `json:"bytes_down,omitempty"` // received
	Workers         int                `json:"workers,omitempty"`    // active
	Seconds         float64            `json:"seconds,omitempty"`    // of the round
	PaidUzen        uint64             `json:"paid_uzen,omitempty"`  // so far, with the fee
	Coin            *Coin              `json:"coin,omitempty"`       // of paid_uzen; absent: ZEN
	// of a round: when its checkpoint was recorded; not of a simulation
	Time time.Time `json:"time,omitzero"`
	// Euclidean norm of the gradient before clipping, the mean over the workers that tell it
	GradNorm *float64 `json:"grad_norm,omitempty"`
	// of a round: mean cosine between the workers' updates and the combined update, if all are available
	Agreement *float64 `json:"agreement,omitempty"`
}

// Measurement returns a value of Measured; nil: the evaluation did not measure it.
func (m Metric) Measurement(name string) *float64 {
	x, ok := m.Measured[name]
	if !ok {
		return nil
	}
	return &x
}

// Metrics are the series of a run, thinned for drawing.
type Metrics struct {
	Steps  int      `json:"steps"`          // inner steps that the run has
	Axis   Axis     `json:"axis"`           // what each round adds, to draw a series by tokens, time or cost
	Series []Series `json:"series"`         // those that have values
	Coin   *Coin    `json:"coin,omitempty"` // of the cost on the axis; absent: ZEN
}

// Axis maps inner steps to tokens, seconds and cost, at the ends of rounds: arrays of one length, ascending. Between
// two entries a reader interpolates.
type Axis struct {
	Step    []float64 `json:"step"`
	Tokens  []float64 `json:"tokens"`
	Seconds []float64 `json:"seconds"`
	Uzen    []float64 `json:"uzen"`
}

// Series is one quantity over inner steps: the arrays have one length.
type Series struct {
	Name  string    `json:"name"`  // loss, eval_loss, learning_rate, tokens_per_second ...
	Label string    `json:"label"` // for people
	Unit  string    `json:"unit"`
	Of    string    `json:"of"`    // step or round: how often it is measured
	Count int       `json:"count"` // values before thinning
	Step  []float64 `json:"step"`
	Value []float64 `json:"value"`
}

// Checkpoint is one line of the lineage: a checkpoint that a quorum attested.
type Checkpoint struct {
	Round      int    `json:"round"`
	StateRoot  string `json:"state_root"`
	Checkpoint string `json:"checkpoint"` // CID of its folder, which IPFS clients get
	// CID of every update that the checkpoint is made of, in order of round and unit
	Updates []string `json:"updates"`
	Signers []Signer `json:"signers"`
}

// Signer is a member's signature over a checkpoint.
type Signer struct {
	ID        string `json:"id"`
	PublicKey []byte `json:"public_key"` // secp256k1, compressed
	Signature []byte `json:"signature"`  // R || S
}

// Lineage is a page of checkpoints, in order of rounds.
type Lineage struct {
	Checkpoints []Checkpoint `json:"checkpoints"`
	Total       int          `json:"total"`
	HasMore     bool         `json:"has_more"`
	After       string       `json:"after,omitempty"` // cursor of the next page
}

// Receipt is one line of why an account was paid, or was not, with its explanation.
type Receipt struct {
	Seq         uint64   `json:"seq"` // of the job, without gaps
	Height      int64    `json:"height"`
	Round       int      `json:"round"`
	Unit        uint32   `json:"unit"`
	Who         string   `json:"who"`
	Role        string   `json:"role"`   // worker, generator, verifier, or "" for the consumer and the community pool
	Kind        string   `json:"kind"`   // work, audit, slash, bounty, fee, deposit or refund
	Flops       uint64   `json:"flops"`  // floating-point operations of the work
	Price       uint64   `json:"price"`  // uzen per 10^15 of them
	Amount      uint64   `json:"amount"` // uzen that Who receives; of a slash, that Who loses
	Fee         uint64   `json:"fee"`    // uzen to the community pool on top
	Reason      string   `json:"reason"` // code
	Fix         string   `json:"fix,omitempty"`
	Explanation string   `json:"explanation"` // one sentence
	Why         string   `json:"why"`         // the reason as the end of a sentence
	Arithmetic  []string `json:"arithmetic"`  // how the amount comes about
	Dispute     *int     `json:"dispute,omitempty"`
	Payer       string   `json:"payer,omitempty"` // whose stake paid it; none: the budget of the job
	Coin        *Coin    `json:"coin,omitempty"`  // of its amounts; absent: ZEN
}

// CoinOf is the coin of the amounts of an answer.
func CoinOf(c *Coin) coin.Coin {
	if c == nil {
		return coin.Coin{}
	}
	return coin.Coin{Denom: c.Denom, Symbol: c.Symbol, Exponent: c.Decimals}
}

// Coin is a coin other than ZEN. Amounts of a value that has one are in its grains: its base units, or 10^-9 of a coin
// with more than nine decimals.
type Coin struct {
	Denom    string `json:"denom"`  // of its base unit, in the bank of the network
	Symbol   string `json:"symbol"` // for people, in lower case
	Decimals uint32 `json:"decimals"`
}

// Receipts is a page of receipts, in the order in which they were issued.
type Receipts struct {
	Receipts []Receipt `json:"receipts"`
	Total    int       `json:"total"`
	HasMore  bool      `json:"has_more"`
	After    string    `json:"after,omitempty"`
}

// Dispute is a bisection, move by move.
type Dispute struct {
	Worker     string  `json:"worker"`
	Challenger string  `json:"challenger"`
	Round      int     `json:"round"`
	Unit       uint32  `json:"unit"`
	Verdict    string  `json:"verdict"` // worker_lied, false_challenge, planted, moot or open
	Reason     string  `json:"reason"`
	Moves      uint32  `json:"moves"`
	HashBytes  uint64  `json:"hash_bytes"` // that the parties showed
	Leaf       string  `json:"leaf"`       // what the referee recomputed
	LeafBytes  uint64  `json:"leaf_bytes"` // that it read
	LeafMS     float64 `json:"leaf_ms"`    // that it took; 0: not known
	Height     int64   `json:"height"`     // at which it ended
	Log        []Move  `json:"log"`
}

// Move is a move of a party in a dispute.
type Move struct {
	Height int64  `json:"height"`
	By     string `json:"by"` // worker or verifier
	What   string `json:"what"`
}

// Disputes are all of a job.
type Disputes struct {
	Disputes []Dispute `json:"disputes"`
}

// Sample is how the model of a round continues a prompt.
type Sample struct {
	Round  uint32   `json:"round"`
	Step   uint32   `json:"step"`
	Prompt string   `json:"prompt"`
	Text   string   `json:"text"`
	Reward *float64 `json:"reward,omitempty"` // of an answer that training drew; nil: of another text
}

// Samples are all of a job.
type Samples struct {
	Samples []Sample `json:"samples"`
}

// Member is an account's part in a job, as its receipts and signatures show it.
type Member struct {
	ID          string      `json:"id"`
	Role        string      `json:"role"` // worker, generator, verifier, consumer or pool
	Units       int         `json:"units"`
	Paid        int         `json:"paid_receipts"`
	Zero        int         `json:"zero_receipts"`
	Uzen        uint64      `json:"uzen"` // received
	SlashedUzen uint64      `json:"slashed_uzen"`
	Signed      int         `json:"signed"`         // checkpoints
	Audits      AuditCounts `json:"audits"`         // drawn for a verifier, or of a worker's units
	Zeros       []string    `json:"zeros"`          // reasons of its zeros, each once
	Coin        *Coin       `json:"coin,omitempty"` // of uzen; absent: ZEN
}

// Members are all of a job.
type Members struct {
	Members []Member  `json:"members"`
	Rounds  int       `json:"rounds"` // checkpoints that might have been signed
	Audited []Audited `json:"audited"`
	Links   []Link    `json:"links"`
	// of a model that is cut, in their order
	Stages []Stage `json:"stages,omitempty"`
}

// Stage is a stage of a model that is cut, with the bytes that it has sent and received so far. How long it computes
// follows from its schedule, where tasks take time by their operations and links take none.
type Stage struct {
	Layers        string   `json:"layers"`
	StateBytes    uint64   `json:"state_bytes"` // weights and moments
	Busy          float64  `json:"busy"`        // share of a unit in which it computes and does not wait for others
	Late          int      `json:"late"`        // steps by which its gradients are late
	SentBytes     uint64   `json:"sent_bytes"`
	ReceivedBytes uint64   `json:"received_bytes"`
	Holders       []Holder `json:"holders"` // members that were paid for units of it, by number
}

// Holder is a member that has computed units of a stage.
type Holder struct {
	ID    string `json:"id"`
	Units int    `json:"units"`
}

// Pipeline is how the model of a run is cut, as its folder has it. Bytes of a stage are those of one step of a replica.
type Pipeline struct {
	Replicas int     `json:"replicas"`
	Stages   []Stage `json:"stages"` // without holders
}

// Link is the transfer from one member to another. On a network it is as the members reported it to the chain in the
// current epoch.
type Link struct {
	By    string `json:"by"` // the member that fetched
	Of    string `json:"of"` // the member that served
	Bytes uint64 `json:"bytes"`
	Rate  uint64 `json:"bytes_per_second"` // at which it came; 0: not measured
	RTT   uint32 `json:"round_trip_ms"`    // 0: not measured
}

// Audited is how often a verifier computed work of a worker again, and the results.
type Audited struct {
	Verifier string `json:"verifier"`
	Worker   string `json:"worker"`
	Audits   int    `json:"audits"`
	Failed   int    `json:"failed"` // that found a fault
}

// Log is a part of the log of a run.
type Log struct {
	Lines []string `json:"lines"`
	From  int64    `json:"from"` // offset of the first byte
	To    int64    `json:"to"`   // offset after the last: where to ask on
	Size  int64    `json:"size"`
}

// Cost is the cost of a job so far: budget = paid + fee + refunded + remaining.
type Cost struct {
	BudgetUzen    uint64 `json:"budget_uzen"`
	PaidUzen      uint64 `json:"paid_uzen"`
	FeeUzen       uint64 `json:"fee_uzen"`
	RefundedUzen  uint64 `json:"refunded_uzen"`
	RemainingUzen uint64 `json:"remaining_uzen"`
	SlashedUzen   uint64 `json:"slashed_uzen"`   // of stakes in ZEN, not of the budget
	Coin          *Coin  `json:"coin,omitempty"` // of the budget and what it paid; absent: ZEN
}

// Spec is the file of a job.
type Spec struct {
	Config    string   `json:"config"`        // YAML
	Overrides []string `json:"set,omitempty"` // KEY=VALUE, applied in order
}

// Submission asks for a job. The same Idempotency-Key gives the same job, and resumes it if it is stopped.
type Submission struct {
	Spec
	Name string `json:"name,omitempty"` // of its folder; the job's name, made unique, if empty
	Plan string `json:"plan,omitempty"` // identifier of a plan: the job fails if its plan differs by then
}

// Plan is the shape and cost of a job before it is submitted.
type Plan struct {
	ID         string   `json:"id"` // of the job that it is about
	Name       string   `json:"name"`
	Steps      int      `json:"steps"`
	Rounds     int      `json:"rounds"`
	Workers    int      `json:"workers"`
	Tokens     uint64   `json:"tokens"`
	Flops      uint64   `json:"flops"`
	Parameters int      `json:"parameters"`
	DiskBytes  int64    `json:"disk_bytes"`  // that one worker must have
	RoundBytes int64    `json:"round_bytes"` // that a worker receives in a round
	CostUzen   uint64   `json:"cost_uzen"`   // at most
	BudgetUzen uint64   `json:"budget_uzen"`
	Facts      []Fact   `json:"facts"`
	Notes      []string `json:"notes"` // settings that have no effect

	StepSeconds float64     `json:"step_seconds"`   // of one inner step of one worker, measured on the server
	Seconds     float64     `json:"seconds"`        // of training on the server
	MemoryBytes uint64      `json:"memory_bytes"`   // of one worker
	Placement   Placement   `json:"placement"`      // the members that would be drawn
	Coin        *Coin       `json:"coin,omitempty"` // of cost and budget; absent: ZEN
	Rejections  []Rejection `json:"rejections"`     // the participants that cannot be drawn, and why
}

// Placement is a machine that does the work of all members of a run by itself, and whether it has the memory for it.
type Placement struct {
	Workers     int    `json:"workers"`
	Verifiers   int    `json:"verifiers"`
	MemoryBytes uint64 `json:"memory_bytes"` // of all of them together, when all are at work
	FreeBytes   uint64 `json:"free_bytes"`   // of memory, on the machine; 0: not known
	Fits        string `json:"fits"`         // yes, no or unknown
}

// Rejection is a participant that cannot take part in a run, and why.
type Rejection struct {
	ID   string `json:"id"`
	Why  string `json:"why"` // stable, such as memory_too_small
	Text string `json:"text"`
}

// Model is the model that a finished run left.
type Model struct {
	ID          string   `json:"id"` // of the run
	Name        string   `json:"name"`
	Folder      string   `json:"folder"` // from where the server was started
	StateRoot   string   `json:"state_root"`
	EvalLoss    *float64 `json:"eval_loss,omitempty"`
	BitsPerByte *float64 `json:"bits_per_byte,omitempty"` // eval_loss, whatever the tokens are
	Steps       int      `json:"steps"`
	Tokens      uint64   `json:"tokens"`
	Rounds      int      `json:"rounds"`  // attested checkpoints behind it
	Signers     int      `json:"signers"` // of the last one
	Facts       []Fact   `json:"facts,omitempty"`
	Files       []File   `json:"files"`
	Contribute  []Member `json:"contributors"` // the members that were paid for work on it
}

// File is a file of a run.
type File struct {
	Name     string    `json:"name"` // with slashes, below the folder of the run
	Kind     string    `json:"kind"` // model, record, or blob: of checkpoints and updates, by content
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

// Files are those of a run that others may have.
type Files struct {
	Files []File `json:"files"`
}

// Models are those of the finished runs, as this API and as OpenAI's clients read them.
type Models struct {
	Models []Model `json:"models"`
}

// Update is the data of an event of the stream of a job: all new records. The event is reset when records were taken
// back (a verdict rolled the run back): a reader then reads them again.
type Update struct {
	Job         Job          `json:"job"`
	Metrics     []Metric     `json:"metrics,omitempty"` // new ones; a reader far behind gets the latest of them only
	Checkpoints []Checkpoint `json:"checkpoints,omitempty"`
	Samples     []Sample     `json:"samples,omitempty"`
	Receipts    int          `json:"receipts"` // there are by now
	Disputes    int          `json:"disputes"`
}
