package rundir

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/coin"
)

// Files of an output folder.
const (
	FileRun          = "run.json"
	FileJob          = "job.yaml"
	FileLineage      = "lineage.jsonl"
	FileMetrics      = "metrics.jsonl"
	FileReceipts     = "receipts.jsonl"
	FileDisputes     = "disputes.jsonl"
	FileSamples      = "samples.jsonl"
	FileLinks        = "links.jsonl"
	FileReleases     = "releases.jsonl" // of keys of encrypted shards, in order
	FileDataKey      = "data.key"       // the secret that these keys follow from
	FileReport       = "report.html"
	FileSummary      = "summary.json"
	FileTrainerState = "trainer_state.json" // the metrics, for tools of Hugging Face's Trainer
	FileLog          = "starling.log"
	DirBlobs         = "blobs"
	DirNetwork       = "network"
)

// RunFile is run.json: what a later command must know to find the job again.
type RunFile struct {
	Format    int       `json:"format"` // of the output folder: 1
	ID        string    `json:"id"`     // of the job
	JobFile   string    `json:"job_file"`
	Overrides []string  `json:"overrides,omitempty"`
	Dishonest int       `json:"dishonest,omitempty"`
	Numerics  uint32    `json:"numerics,omitempty"` // version of the job's; 0: 1
	Finished  bool      `json:"finished"`
	Coin      coin.Coin `json:"coin,omitzero"` // of the order; absent: ZEN
	// how the model is cut; nil: it is not
	Pipeline *api.Pipeline `json:"pipeline,omitempty"`
	Blobs    struct {      // what the job shipped
		Spec     string   `json:"spec"`
		Program  string   `json:"program"`
		Manifest string   `json:"manifest"`
		Shards   []string `json:"shards"`
		Genesis  string   `json:"genesis"`
		Frozen   string   `json:"frozen,omitempty"` // of a job that trains an adapter, or on a graph
	} `json:"blobs"`
}

// OutDir is an output folder, locked while it is open.
type OutDir struct {
	Path string
	Run  RunFile

	unlock func() error
}

// Errors of output folders.
var (
	ErrInUse      = errors.New("another process is using the output folder")
	ErrNotARun    = errors.New("the folder holds no run of starling")
	ErrDamaged    = errors.New("a file of the run cannot be read")
	ErrFinished   = errors.New("the output folder holds a finished run")
	ErrUnfinished = errors.New("the output folder holds an unfinished run")
	ErrOtherJob   = errors.New("the output folder holds an unfinished run of another job")
)

func (o *OutDir) File(name string) string { return filepath.Join(o.Path, name) }

// Probe tells what an output folder holds: nil for nothing of ours, ErrFinished or ErrUnfinished.
func Probe(path string) error {
	o := &OutDir{Path: path}
	switch err := o.ReadRun(); {
	case errors.Is(err, ErrNotARun):
		return nil
	case err != nil:
		return err
	case o.Run.Finished:
		return ErrFinished
	}
	return ErrUnfinished
}

// OpenOutDir opens an existing output folder, or makes one.
func OpenOutDir(path string) (*OutDir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	o := &OutDir{Path: path}
	unlock, err := folder.Lock(path)
	if errors.Is(err, folder.ErrInUse) {
		return nil, fmt.Errorf("%w: %s", ErrInUse, path)
	}
	if err != nil {
		return nil, err
	}
	o.unlock = unlock
	if err := o.ReadRun(); err != nil && !errors.Is(err, ErrNotARun) {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// Close unlocks the folder.
func (o *OutDir) Close() error { return o.unlock() }

func (o *OutDir) ReadRun() error {
	text, err := os.ReadFile(o.File(FileRun))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %s", ErrNotARun, o.Path)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &o.Run); err != nil || o.Run.Format != 1 {
		return fmt.Errorf("%w: %s has a %s that cannot be read (%v)", ErrNotARun, o.Path, FileRun, err)
	}
	return nil
}

// Numerics is the version of the numerics of the job of the run.
func (o *OutDir) Numerics() uint32 { return max(o.Run.Numerics, kernel.Version1) }

func (o *OutDir) WriteRun() error { return o.WriteJSON(FileRun, o.Run) }

func (o *OutDir) WriteJSON(name string, v any) error { return folder.WriteJSON(o.File(name), v) }

func (o *OutDir) Write(name string, b []byte) error { return folder.WriteFile(o.File(name), b) }

// Append adds whole lines to a file and makes them durable.
func (o *OutDir) Append(name string, lines []byte) error {
	f, err := os.OpenFile(o.File(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Sync(), f.Close())
}

// Start records the job of a fresh run.
func (o *OutDir) Start(j *job.Job, run RunFile) error {
	absolute, err := filepath.Abs(j.Path)
	if err != nil {
		return err
	}
	run.Format, run.JobFile, run.Overrides = 1, absolute, j.Overrides
	o.Run = run
	return errors.Join(o.Write(FileJob, j.Source), o.WriteRun())
}

// Withdraw takes back that a run began, of which nothing is there yet.
func (o *OutDir) Withdraw() error {
	return errors.Join(os.RemoveAll(o.File(DirNetwork)), os.Remove(o.File(FileRun)))
}

// Rewind brings the files of an unfinished run back to its last complete lineage line, and returns the lines.
func (o *OutDir) Rewind() ([]Line, error) {
	lines, err := ParseLineage(o.File(FileLineage), o.Run.ID)
	if err != nil {
		return nil, err
	}
	last := len(lines)
	if last == 0 {
		last = -1 // what came before the first round is collected again
	}
	return lines, o.Keep(lines, last)
}

// Keep brings the files back to the first lines of the lineage, and to the records about rounds up to the last given.
func (o *OutDir) Keep(lines []Line, last int) error {
	var lineage bytes.Buffer
	for _, l := range lines {
		lineage.Write(l.Encode())
	}
	return errors.Join(o.Write(FileLineage, lineage.Bytes()), o.keepRecords(FileMetrics, last),
		o.keepRecords(FileSamples, last))
}

// keepRecords drops the lines about later rounds than the last, and a line cut off by a crash.
func (o *OutDir) keepRecords(name string, last int) error {
	text, err := os.ReadFile(o.File(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept bytes.Buffer
	s := bufio.NewScanner(bytes.NewReader(text))
	for s.Scan() {
		var record struct{ Round int }
		if json.Unmarshal(s.Bytes(), &record) == nil && record.Round <= last {
			kept.Write(s.Bytes())
			kept.WriteByte('\n')
		}
	}
	return errors.Join(s.Err(), o.Write(name, kept.Bytes()))
}

// Metric is one line of metrics.jsonl.
type Metric = api.Metric

// AppendRecords adds one line of JSON a record.
func AppendRecords[T any](o *OutDir, name string, records []T) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return o.Append(name, b.Bytes())
}

func (o *OutDir) ReadMetrics() ([]Metric, error) {
	metrics, err := ReadLines[Metric](o.File(FileMetrics))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return metrics, err
}
