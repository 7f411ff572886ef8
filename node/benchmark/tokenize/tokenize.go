// Package tokenize measures the speed and the memory of tokenizing: starling data tokenize, in a process of its own, on
// a text that is made here. Its constants are the limits of the figures.
package tokenize

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/memory"
)

// Bars.
const (
	leastSpeed = 20.0  // MB/s
	leastCPU   = 10.0  // MB a processor second: the same on two cores, which a busy machine does not give
	mostMemory = 500.0 // MB
	megabyte   = 1e6
)

const (
	vocabulary = 8192
	learnt     = 2e6 // bytes of the text on which the tokenizer is trained
)

// forms are the files that hold the text.
var forms = [...]string{"text.txt", "lines.jsonl", "lines.jsonl.zst"}

// Run is a file that was tokenized.
type Run struct {
	Name    string  `json:"name"`
	Bytes   int64   `json:"text_bytes"`
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"`
	Peak    uint64  `json:"peak_bytes"`
}

// Report is the result of the measurement.
type Report struct {
	Runs []Run           `json:"runs"`
	Bars []benchmark.Bar `json:"bars"`
}

// Options choose what is measured.
type Options struct {
	MB       int               // of text
	Keep     string            // folder in which the text and the tokenizer remain; "": they are removed
	Progress func(name string) // may be nil
}

// Measure makes a text of some MB as one document, and the same as lines of jsonl, plain and packed, and tokenizes
// each.
func Measure(ctx context.Context, o Options) (_ *Report, err error) {
	dir := o.Keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "starling-tokenize-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	m := &measurement{Options: o, dir: dir}
	if err := m.makeFiles(int64(o.MB) * megabyte); err != nil {
		return nil, err
	}
	for _, name := range forms {
		r, err := m.run(ctx, name)
		if err != nil {
			return nil, err
		}
		m.Runs = append(m.Runs, r)
		mb := float64(r.Bytes) / megabyte
		m.Bars = append(m.Bars, benchmark.AtLeast(name+" MB/s", mb/r.Seconds, leastSpeed),
			benchmark.AtLeast(name+" MB a processor second", mb/r.CPU, leastCPU),
			benchmark.AtMost(name+" peak MB", float64(r.Peak)/megabyte, mostMemory))
	}
	return &m.Report, nil
}

type measurement struct {
	Options
	Report
	dir string
}

// makeFiles writes the text in each form, and a tokenizer that is trained on its beginning.
func (m *measurement) makeFiles(size int64) (err error) {
	var files []*os.File
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	for _, name := range forms {
		f, err := os.Create(filepath.Join(m.dir, name))
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	text, lines := bufio.NewWriterSize(files[0], 1<<20), bufio.NewWriterSize(files[1], 1<<20)
	packed, err := zstd.NewWriter(files[2], zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	var sample []string
	w := newWriter()
	for written := int64(0); written < size; {
		document := w.document()
		line, err := json.Marshal(map[string]string{"text": document})
		if err != nil {
			return err
		}
		line = append(line, '\n')
		if written < learnt {
			sample = append(sample, document)
		}
		written += int64(len(document))
		_, first := text.WriteString(document)
		_, second := lines.Write(line)
		_, third := packed.Write(line)
		if err := errors.Join(first, second, third); err != nil {
			return err
		}
	}
	tok, err := tokenizer.TrainBPE(slices.Values(sample), vocabulary)
	if err != nil {
		return err
	}
	return errors.Join(text.Flush(), lines.Flush(), packed.Close(),
		os.WriteFile(filepath.Join(m.dir, "tokenizer.json"), tok.JSON(), 0o600))
}

// run tokenizes a file.
func (m *measurement) run(ctx context.Context, name string) (r Run, err error) {
	if m.Progress != nil {
		m.Progress(name)
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	out := filepath.Join(m.dir, "tokens-"+name)
	defer os.RemoveAll(out)
	process := exec.CommandContext(ctx, self, "data", "tokenize", filepath.Join(m.dir, name), "--tokenizer",
		filepath.Join(m.dir, "tokenizer.json"), "--dir", out, "-o", "json")
	var printed, said bytes.Buffer
	process.Stdout, process.Stderr = &printed, &said
	begin := time.Now()
	err = process.Run()
	r = Run{Name: name, Seconds: benchmark.Rounded(time.Since(begin).Seconds(), 2)}
	if err != nil {
		return r, fmt.Errorf("benchmark: tokenize %s: %w: %s", name, err, strings.TrimSpace(said.String()))
	}
	r.Peak = memory.PeakOf(process.ProcessState)
	r.CPU = benchmark.Rounded((process.ProcessState.UserTime() + process.ProcessState.SystemTime()).Seconds(), 2)
	var made struct {
		Tokens int `json:"tokens"`
	}
	if err := json.Unmarshal(printed.Bytes(), &made); err != nil {
		return r, err
	}
	info, err := os.Stat(filepath.Join(m.dir, "text.txt"))
	if err != nil {
		return r, err
	}
	r.Tokens, r.Bytes = made.Tokens, info.Size() // of the text, however it is packed
	return r, nil
}
