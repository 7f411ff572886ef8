package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/push/record"
	"github.com/starling-network/starling/node/runs/lines"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/web/series"
	"github.com/starling-network/starling/web/source"
)

// folder is a run's folder, as it was at the last look.
type folder struct {
	id, path string
	shown    string // the path relative to where the process was started

	mu       sync.Mutex
	looked   time.Time
	version  uint64
	last     *source.History
	live     Live
	held     bool // the lock of the folder; known: the system tells
	known    bool
	metrics  lines.File[api.Metric]
	lineage  lines.File[api.Checkpoint]
	receipts lines.File[line]
	disputes lines.File[api.Dispute]
	samples  lines.File[api.Sample]
	links    lines.File[api.Link]
	about    about
	told     []api.Receipt // of receipts.Records
	spark    struct {
		records int
		values  []float64
	}
}

// about is what the small files of a folder say. They change seldom.
type about struct {
	stamp   string // of the files
	run     runFile
	job     *job.Job // nil: it cannot be read
	summary *summary
	asked   *Submitted // nil: it was not submitted to a server
	virtual bool       // a simulation
	damaged string     // why the totals of the run cannot be read; "": they can, or are not written yet
	started time.Time
	copies  []api.Push // of its model, in stores outside of the network
}

// runFile is the part of run.json that is shown.
type runFile struct {
	ID        string    `json:"id"`
	JobFile   string    `json:"job_file"`
	Overrides []string  `json:"overrides"`
	Finished  bool      `json:"finished"`
	Coin      coin.Coin `json:"coin,omitzero"`

	Pipeline *api.Pipeline `json:"pipeline"`
}

// Submitted says, in the folder of a job that was submitted to a server, what was asked for, and how it ended where the
// files of a run do not tell.
type Submitted struct {
	Key    string      `json:"key,omitempty"`  // SHA-256 of the Idempotency-Key
	Spec   string      `json:"spec"`           // SHA-256 of the specification
	Set    []string    `json:"set,omitempty"`  // changes to the job file
	Plan   string      `json:"plan,omitempty"` // identifier of the plan that was looked at
	At     time.Time   `json:"at,omitzero"`    // when
	State  string      `json:"state,omitempty"`
	Reason *api.Reason `json:"reason,omitempty"`

	Token  string  `json:"token,omitempty"`       // digest of the token that it was submitted with
	Budget uint64  `json:"budget_uzen,omitempty"` // of the job; in millionths of its coin, as in job files
	Spent  *uint64 `json:"spent_uzen,omitempty"`  // of it, once that is known for good

	// of a job that is ordered on a network: the address of the account; "": it is trained by the server
	Account string    `json:"account,omitempty"`
	Mark    string    `json:"mark,omitempty"`    // tells its order from others of the account that are the same
	Ordered bool      `json:"ordered,omitempty"` // the network has the order
	Coin    coin.Coin `json:"coin,omitzero"`     // of the order; absent: ZEN
	Cancel  bool      `json:"cancel,omitempty"`  // the order is to be taken back
}

// LabelTuning is where the job file of a tuning says what was asked for.
const LabelTuning = "fine_tuning"

// Again says how a run that stopped is resumed; j is its job, nil if its file cannot be read.
func (s *Submitted) Again(run string, j *job.Job) string {
	if j != nil && j.Labels[LabelTuning] != "" {
		return fmt.Sprintf("POST /v1/fine_tuning/jobs/%s/resume: it continues from the last attested checkpoint", run)
	}
	if s.Account != "" {
		return "a server over this folder with --network and --home of " + s.Account + " continues it"
	}
	if s.Key == "" {
		return "submit it again: it begins from the start; with an Idempotency-Key it would continue"
	}
	return "submit it again with the same Idempotency-Key: it continues from there"
}

// summary is the part of summary.json, or simulation.json, that is shown.
type summary struct {
	Job           string          `json:"job"`
	Name          string          `json:"name"`
	Rounds        int             `json:"rounds"`
	Workers       int             `json:"workers"`
	Steps         int             `json:"steps"`
	Tokens        uint64          `json:"tokens"`
	FirstEvalLoss float64         `json:"first_eval_loss"`
	FinalEvalLoss float64         `json:"final_eval_loss"`
	Diverged      string          `json:"diverged"`
	Audits        api.AuditCounts `json:"audits"`
	PaidUzen      uint64          `json:"paid_uzen"`
	FeeUzen       uint64          `json:"fee_uzen"`
	RefundedUzen  uint64          `json:"refunded_uzen"`
	BudgetUzen    uint64          `json:"budget_uzen"`
	SlashedUzen   uint64          `json:"slashed_uzen"`
	Coin          coin.Coin       `json:"coin,omitzero"`
	StateRoot     string          `json:"state_root"`
	Seconds       float64         `json:"seconds"`
	BytesUp       uint64          `json:"bytes_up"`
	BytesDown     uint64          `json:"bytes_down"`
	Utilisation   float64         `json:"utilisation"`
	Halted        string          `json:"halted"`
	Parties       []api.Party     `json:"parties"`
	Overrides     []string        `json:"overrides"` // of a simulation: changes to the job file
	Sweep         []string        `json:"sweep"`     // those of them that tell it from others of a sweep
}

func (f *folder) beside(live Live) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if live != f.live {
		f.live, f.looked = live, time.Time{}
	}
}

// history is the content of the folder, read again if the last read is old.
func (f *folder) history(ctx context.Context) (*source.History, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil && time.Since(f.looked) < lookAge {
		return f.last, nil
	}
	changed := f.look()
	f.looked = time.Now()
	h := &source.History{Version: f.version, Metrics: f.metrics.Records, Lineage: f.lineage.Records, Receipts: f.told,
		Disputes: f.disputes.Records, Samples: f.samples.Records, Links: f.links.Records,
		Pipeline: f.about.run.Pipeline}
	if f.live != nil {
		if b, err := f.live.Books(ctx); err == nil {
			h.Receipts, h.Disputes, h.Links = b.Receipts, b.Disputes, b.Links
		}
	}
	h.Job = f.job(h)
	if old := f.last; old != nil && !changed && len(old.Receipts) == len(h.Receipts) &&
		len(old.Disputes) == len(h.Disputes) && slices.Equal(old.Links, h.Links) && sameState(old.Job, h.Job) {
		return old, nil
	}
	f.version++
	h.Version = f.version
	f.last = h
	return h, nil
}

func sameState(a, b api.Job) bool {
	code := func(r *api.Reason) string {
		if r == nil {
			return ""
		}
		return r.Code
	}
	return a.State == b.State && a.Phase == b.Phase && a.PaidUzen == b.PaidUzen && a.Workers == b.Workers &&
		a.Step == b.Step && code(a.Reason) == code(b.Reason) &&
		slices.EqualFunc(a.Pushes, b.Pushes, func(x, y api.Push) bool { return x.State == y.State })
}

// look reads new data of the files. A file that cannot be read now is tried at the next look. look reads in the
// reverse order of the writer: the lock, the totals, then the records. A run that it finds ended has thus all its
// records.
func (f *folder) look() (changed bool) {
	f.held, f.known = lockHeld(filepath.Join(f.path, ".lock"))
	changed = f.about.look(f.path)
	at := func(name string) string { return filepath.Join(f.path, name) }
	if f.metrics.Path == "" {
		f.metrics = lines.File[api.Metric]{Path: at(fileMetrics), Decode: lines.Metric}
		f.lineage.Path, f.receipts.Path, f.disputes.Path, f.samples.Path, f.links.Path = at(fileLineage), at(fileReceipts),
			at(fileDisputes), at(fileSamples), at(fileLinks)
	}
	news := func(look func() (bool, error)) bool {
		yes, _ := look()
		changed = changed || yes
		return yes
	}
	news(f.metrics.Look)
	news(f.lineage.Look)
	news(f.samples.Look)
	news(f.links.Look)
	disputed := news(f.disputes.Look)
	if news(f.receipts.Look) || disputed {
		f.told = explain(f.receipts.Records, f.disputes.Records)
	}
	return changed
}

// look reads the small files again if one of them is another than before.
func (a *about) look(dir string) (changed bool) {
	var stamp strings.Builder
	for _, name := range []string{fileRun, fileJob, fileSummary, fileSimulation, FileSubmitted, record.File} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			fmt.Fprint(&stamp, name, info.Size(), info.ModTime().UnixNano(), ";")
		}
	}
	if stamp.String() == a.stamp {
		return false
	}
	*a = about{stamp: stamp.String()}
	_ = readJSON(filepath.Join(dir, fileRun), &a.run)
	var s Submitted
	if readJSON(filepath.Join(dir, FileSubmitted), &s) == nil {
		a.asked = &s
	}
	a.copies, _ = record.Read(dir) // none if they cannot be read
	overrides := a.run.Overrides
	if a.run.ID == "" && a.asked != nil {
		overrides = a.asked.Set
	}
	for _, name := range []string{fileSummary, fileSimulation} {
		var s summary
		switch err := readJSON(filepath.Join(dir, name), &s); {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			a.damaged = fmt.Sprintf("%s cannot be read (%v): the totals are added up from the other files, and what was "+
				"refunded is not known", name, err)
		case err == nil:
			a.summary, a.virtual = &s, name == fileSimulation
			a.started = modified(filepath.Join(dir, name))
			if a.virtual {
				overrides = s.Overrides
			}
		}
	}
	path := filepath.Join(dir, fileJob)
	if source, err := os.ReadFile(path); err == nil {
		a.started = modified(path)
		if j, err := job.Parse(source, path, overrides...); err == nil {
			a.job = j
		}
	}
	return true
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime().UTC().Truncate(time.Millisecond)
}

// maxSmall bounds the small files.
const maxSmall = 16 << 20

func readJSON(path string, v any) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > maxSmall {
		return fmt.Errorf("runs: %s has %d bytes", path, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// job puts together what is known of a run.
func (f *folder) job(h *source.History) api.Job {
	a := &f.about
	j := api.Job{ID: f.id, Job: a.run.ID, Name: filepath.Base(f.path), Folder: f.shown, Kind: "run", Started: a.started,
		Updated: f.updated(), Disputes: len(h.Disputes)}
	j.Coin = coins.Shown(a.run.Coin)
	if a.asked != nil && a.run.Coin.Own() { // its order is not placed yet, or it is in ZEN
		j.Coin = coins.Shown(a.asked.Coin)
	}
	plan(&j, a.job)
	measure(&j, h)
	if s := a.summary; s != nil {
		conclude(&j, s, a.virtual)
	}
	var p Progress
	if f.live != nil {
		p = f.live.Progress()
		j.Phase, j.SecondsLeft, j.PaidUzen = p.Phase, p.SecondsLeft, max(j.PaidUzen, p.PaidUzen-min(p.PaidUzen, j.FeeUzen))
		if p.Workers > 0 {
			j.Workers = p.Workers
		}
	}
	if len(h.Metrics) != f.spark.records {
		f.spark.records, f.spark.values = len(h.Metrics), series.Spark(h.Metrics)
	}
	j.Spark = f.spark.values
	j.State, j.Reason = f.state(h, &j)
	if j.State == "running" && p.Queued {
		j.State = "queued"
	}
	for _, c := range a.copies {
		if c.State == record.Sending && f.known && !f.held {
			c.State = record.Waiting // the process that sent it has ended
		}
		j.Pushes = append(j.Pushes, c)
	}
	if f.live != nil && j.State != "done" && p.Why != nil {
		j.Reason = p.Why
	}
	return j
}
