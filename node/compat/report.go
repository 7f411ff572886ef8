package compat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/web/browser"
)

// Report is what `starling bench compat` prints.
type Report struct {
	Bars       []benchmark.OptionalBar `json:"bars"`
	Folders    []Folder                `json:"folders"`
	Tokenizers []Tokenizer             `json:"tokenizers"`

	Wallets  map[string]string `json:"wallets,omitempty"`  // what each version of CosmJS fails with, "" if it does not
	Findings []string          `json:"findings,omitempty"` // of axe-core
}

// Least is the number of published configurations that must load.
const Least = 14

// Options say what is measured.
type Options struct {
	Threads int    // of programs
	Tree    string // the source tree, whose npm packages CosmJS and axe-core are
	Quick   bool   // leave these out
	Chain   StartChain
}

// Run measures everything.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	var err error
	if r.Folders, err = Folders(o.Threads); err != nil {
		return nil, err
	}
	if r.Tokenizers, err = Tokenizers(); err != nil {
		return nil, err
	}
	r.sum()
	if o.Quick {
		return r, nil
	}
	if err := r.wallets(ctx, o.Tree, o.Chain); err != nil {
		return nil, err
	}
	return r, r.dashboard(ctx, o.Tree)
}

// Print writes the bars as a table.
func (r *Report) Print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIGURE\tVALUE\tBAR\tHOLDS")
	number := func(x float64) string { return fmt.Sprintf("%.3g", x) }
	for _, b := range r.Bars {
		fmt.Fprintf(w, "%s\t%s\t%s\t%v\n", b.Name, b.Measured(number), number(b.Bar), b.Holds)
	}
	return w.Flush()
}

// versions are those of CosmJS that dApps have.
var versions = []string{"0.32", "0.36", "0.38", "0.39"}

// wallets has other programs sign.
func (r *Report) wallets(ctx context.Context, tree string, start StartChain) error {
	failed, err := Wallets(ctx, tree, start)
	if err != nil && !errors.Is(err, browser.ErrMissing) {
		return err
	}
	r.Wallets = failed
	for _, version := range versions {
		b := benchmark.OptionalBar{Name: "CosmJS " + version + " reads a new account and signs for it", Bar: 1}
		if why, tried := failed[version]; err != nil || !tried {
			b.Missing = cmp.Or(missing(err), "CosmJS "+version)
		} else {
			b.Holds = why == ""
			b.Value = new(float64)
			if b.Holds {
				*b.Value = 1
			}
		}
		r.Bars = append(r.Bars, b)
	}
	return nil
}

// dashboard has a browser look for what keeps people out.
func (r *Report) dashboard(ctx context.Context, tree string) error {
	pages, findings, err := Accessibility(ctx, tree)
	if err != nil && !errors.Is(err, browser.ErrMissing) {
		return err
	}
	r.Findings = findings
	b := benchmark.OptionalBar{
		Name:    fmt.Sprintf("findings of axe-core on %d pages, 2 themes and 2 widths", pages),
		Missing: missing(err)}
	if err == nil {
		n := float64(len(findings))
		b.Value, b.Holds = &n, n == 0
	} else {
		b.Name = "findings of axe-core on the pages of the dashboard"
	}
	r.Bars = append(r.Bars, b)
	return nil
}

// missing says what an error lacks.
func missing(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), browser.ErrMissing.Error()+": ")
}

// sum makes the bars of the figures.
func (r *Report) sum() {
	atMost := func(name string, value, bar float64) {
		r.Bars = append(r.Bars, benchmark.OptionalBar{Name: name, Value: &value, Bar: bar, Holds: value <= bar})
	}
	loaded, unequal, strayed := 0, 0, 0
	worst := map[string]float64{}
	for _, f := range r.Folders {
		if f.Error != "" {
			strayed++
			continue
		}
		loaded++
		worst[f.Architecture] = max(worst[f.Architecture], f.Difference)
		if !f.Exported {
			unequal++
		}
		if f.Greedy < Greedy {
			strayed++
		}
	}
	n := float64(loaded)
	r.Bars = append(r.Bars, benchmark.OptionalBar{Name: "published configurations that load", Value: &n, Bar: Least,
		Holds: loaded >= Least && loaded == len(r.Folders)})
	for _, name := range slices.Sorted(maps.Keys(worst)) {
		atMost("largest difference of a logit from PyTorch's, "+name, worst[name], Tolerance)
	}
	for _, t := range r.Tokenizers {
		different := t.Different
		if t.Error != "" {
			different = t.Lines
		}
		atMost(fmt.Sprintf("lines of %d that Hugging Face's tokenizers encode otherwise, %s", t.Lines, t.Name),
			float64(different), 0)
	}
	atMost("exports that read back otherwise", float64(unequal), 0)
	atMost(fmt.Sprintf("models whose greedy text of %d tokens is not PyTorch's", Greedy), float64(strayed), 0)
}

// Greedy is the number of tokens that are compared.
const Greedy = 40

// follow counts how many of the most likely tokens after the first of want's are PyTorch's, from the beginning on.
func follow(m *folder.Model, want expected, threads int) (n int, err error) {
	batch := generate.NewBatch(m.Config, threads)
	if err := batch.SetWeights(m.Tensors); err != nil {
		return 0, err
	}
	r := generate.NewReader(batch)
	next := want.Tokens[:begin]
	for _, id := range want.Greedy {
		logits, err := r.Read(next)
		if err != nil {
			return n, err
		}
		best := slices.Index(logits, slices.Max(logits))
		if int32(best) != id {
			return n, nil
		}
		n++
		next = []int32{id}
	}
	return n, nil
}

const begin = 8 // tokens that are read first

// readsBack reports whether a model that is written, in shards, is read as it was.
func readsBack(m *folder.Model) (bool, error) {
	files, err := m.Files(4 << 10)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "starling-compat-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	for _, f := range files {
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			return false, err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), b.Bytes(), 0o600); err != nil {
			return false, err
		}
	}
	again, err := folder.Read(os.DirFS(dir))
	if err != nil || again.Config != m.Config || len(again.Tensors) != len(m.Tensors) ||
		!maps.Equal(again.DTypes, m.DTypes) {
		return false, err
	}
	for name, t := range m.Tensors {
		if !again.Tensors[name].Shape.Equal(t.Shape) || !bytes.Equal(again.Tensors[name].Bytes(), t.Bytes()) {
			return false, nil
		}
	}
	return true, nil
}
