package node

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
	"github.com/starling-network/starling/node/home"
)

// Files of an output folder.
const (
	fileRun          = "run.json"
	fileJob          = "job.yaml"
	fileLineage      = "lineage.jsonl"
	fileMetrics      = "metrics.jsonl"
	fileReceipts     = "receipts.jsonl"
	fileDisputes     = "disputes.jsonl"
	fileSamples      = "samples.jsonl"
	fileLinks        = "links.jsonl"
	fileReport       = "report.html"
	fileSummary      = "summary.json"
	fileTrainerState = "trainer_state.json" // the metrics, for tools of Hugging Face's Trainer
	fileLog          = "starling.log"
	dirBlobs         = "blobs"
	dirNetwork       = "network"
)

// runFile is run.json: what a later command must know to find the job again.
type runFile struct {
	Format    int      `json:"format"` // of the output folder: 1
	ID        string   `json:"id"`     // of the job
	JobFile   string   `json:"job_file"`
	Overrides []string `json:"overrides,omitempty"`
	Dishonest int      `json:"dishonest,omitempty"`
	Finished  bool     `json:"finished"`
	Blobs     struct { // what the job shipped
		Spec     string   `json:"spec"`
		Program  string   `json:"program"`
		Manifest string   `json:"manifest"`
		Shards   []string `json:"shards"`
		Genesis  string   `json:"genesis"`
		Frozen   string   `json:"frozen,omitempty"` // of a job that trains an adapter
	} `json:"blobs"`
}

// OutDir is an output folder, locked while it is open.
type OutDir struct {
	Path string
	Run  runFile

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

func (o *OutDir) file(name string) string { return filepath.Join(o.Path, name) }

// Probe tells what an output folder holds: nil for nothing of ours, ErrFinished or ErrUnfinished.
func Probe(path string) error {
	o := &OutDir{Path: path}
	switch err := o.readRun(); {
	case errors.Is(err, ErrNotARun):
		return nil
	case err != nil:
		return err
	case o.Run.Finished:
		return ErrFinished
	}
	return ErrUnfinished
}

// openOutDir opens an existing output folder, or makes one.
func openOutDir(path string) (*OutDir, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	o := &OutDir{Path: path}
	unlock, err := home.Lock(path)
	if errors.Is(err, home.ErrInUse) {
		return nil, fmt.Errorf("%w: %s", ErrInUse, path)
	}
	if err != nil {
		return nil, err
	}
	o.unlock = unlock
	if err := o.readRun(); err != nil && !errors.Is(err, ErrNotARun) {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// Close unlocks the folder.
func (o *OutDir) Close() error { return o.unlock() }

func (o *OutDir) readRun() error {
	text, err := os.ReadFile(o.file(fileRun))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w: %s", ErrNotARun, o.Path)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &o.Run); err != nil || o.Run.Format != 1 {
		return fmt.Errorf("%w: %s has a %s that cannot be read (%v)", ErrNotARun, o.Path, fileRun, err)
	}
	return nil
}

func (o *OutDir) writeRun() error { return o.writeJSON(fileRun, o.Run) }

func (o *OutDir) writeJSON(name string, v any) error { return writeJSON(o.file(name), v) }

func (o *OutDir) write(name string, b []byte) error { return writeFile(o.file(name), b) }

// append adds whole lines to a file and makes them durable.
func (o *OutDir) append(name string, lines []byte) error {
	f, err := os.OpenFile(o.file(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	return errors.Join(err, f.Sync(), f.Close())
}

// start records the job of a fresh run.
func (o *OutDir) start(j *job.Job, run runFile) error {
	absolute, err := filepath.Abs(j.Path)
	if err != nil {
		return err
	}
	run.Format, run.JobFile, run.Overrides = 1, absolute, j.Overrides
	o.Run = run
	return errors.Join(o.write(fileJob, j.Source), o.writeRun())
}

// rewind brings the files of an unfinished run back to its last complete lineage line, and returns the lines.
func (o *OutDir) rewind() ([]Line, error) {
	lines, err := parseLineage(o.file(fileLineage), o.Run.ID)
	if err != nil {
		return nil, err
	}
	last := len(lines)
	if last == 0 {
		last = -1 // what came before the first round is collected again
	}
	return lines, o.keep(lines, last)
}

// keep brings the files back to the first lines of the lineage, and to the records about rounds up to the last given.
func (o *OutDir) keep(lines []Line, last int) error {
	var lineage bytes.Buffer
	for _, l := range lines {
		lineage.Write(l.Encode())
	}
	return errors.Join(o.write(fileLineage, lineage.Bytes()), o.keepRecords(fileMetrics, last), o.keepRecords(fileSamples, last))
}

// keepRecords drops the lines about later rounds than the last, and a line cut off by a crash.
func (o *OutDir) keepRecords(name string, last int) error {
	text, err := os.ReadFile(o.file(name))
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
	return errors.Join(s.Err(), o.write(name, kept.Bytes()))
}

// Metric is one line of metrics.jsonl.
type Metric = api.Metric

// appendRecords adds one line of JSON a record.
func appendRecords[T any](o *OutDir, name string, records []T) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return o.append(name, b.Bytes())
}

func (o *OutDir) readMetrics() ([]Metric, error) {
	metrics, err := readLines[Metric](o.file(fileMetrics))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return metrics, err
}
