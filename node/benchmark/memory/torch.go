package memory

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/node/benchmark"
)

//go:embed llama.py
var llama string

// pythonOfTorch is the interpreter for which Debian's package python3-torch is.
const pythonOfTorch = "/usr/bin/python3"

// withoutTorch is the entry of Report.Skipped of a machine that has no PyTorch.
const withoutTorch = "PyTorch"

// torch computes the steps of a unit in PyTorch, and compares the memory of both.
func (m *measurement) torch(ctx context.Context, z Size, unit Run) error {
	if exec.CommandContext(ctx, pythonOfTorch, "-c", "import torch").Run() != nil {
		if !slices.Contains(m.Skipped, withoutTorch) {
			m.Skipped = append(m.Skipped, withoutTorch)
		}
		return ctx.Err()
	}
	name := "PyTorch of " + z.Name
	if m.Progress != nil {
		m.Progress(name)
	}
	args := []string{"-c", llama}
	for _, n := range []int{z.Hidden, z.Inter, z.Layers, z.Heads, z.Vocabulary, z.Length, z.Sequences / 2, syncSteps} {
		args = append(args, strconv.Itoa(n))
	}
	var said bytes.Buffer
	process := exec.CommandContext(ctx, pythonOfTorch, args...)
	process.Stderr = &said
	r, err := measured(name, process, "")
	if err != nil {
		return fmt.Errorf("benchmark: %s: %w: %s", name, err, strings.TrimSpace(said.String()))
	}
	m.Runs = append(m.Runs, r)
	m.Bars = append(m.Bars, benchmark.AtMost(unit.Name+" / PyTorch", ratio(unit.Peak, r.Peak), ofTorch))
	return nil
}
