package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data/nodes"
)

const linked = "apiVersion: starling/v1\nkind: TrainingJob\ntask: graph\nmodel: {architecture: gcn}\n" +
	"datasets: [{path: nodes.jsonl}, {path: edges.csv}]\nval_set_size: 0.25\ntraining: {num_epochs: 8}\n" +
	"strategy: {workers: 1}\n"

// graphJob is a job in a folder with nodes and edges.
func graphJob(t *testing.T, lines, edges string) *job.Job {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.jsonl": lines, "edges.csv": edges, "job.yaml": linked} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	j, err := job.Load(filepath.Join(dir, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Nodes with a class are examples, in an order drawn from the seed.
func TestGraph(t *testing.T) {
	lines := `{"id": "none", "features": [0]}` + "\n"
	for i := range 8 {
		lines += `{"id": "` + string(rune('a'+i)) + `", "label": "` + []string{"odd", "even"}[i%2] + `", "features": [1]}` +
			"\n"
	}
	j := graphJob(t, lines, "source,target\na,none\nb,c\n")
	g, err := GraphOf(j)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.Labels, []string{"even", "odd"}) || len(g.IDs) != 9 || g.Corpus.Train.Len() != 6*nodes.RowTokens ||
		g.Corpus.Val.Len() != 2*nodes.RowTokens {
		t.Fatalf("%q, %d nodes, %d tokens", g.Labels, len(g.IDs), g.Corpus.Train.Len())
	}
	seen := map[uint32]bool{}
	for i := 0; i < g.Corpus.Train.Len(); i += nodes.RowTokens {
		class, node := g.Corpus.Train.At(i), g.Corpus.Train.At(i+1)
		if class != node%2 || node == 0 {
			t.Errorf("node %d has class %d", node, class)
		}
		seen[node] = true
	}
	if len(seen) != 6 {
		t.Errorf("nodes %v", seen)
	}
	count, err := Count(t.Context(), j, nil)
	if err != nil || count.Sequences != 5 || count.SequenceLength != nodes.RowTokens || count.Documents != 8 {
		t.Errorf("counted %+v, %v", count, err)
	}
	if timed, err := InSteps(j, nil); err != nil || timed.Training.MaxSteps != 5 {
		t.Errorf("%+v, %v", timed.Training, err)
	}
	found, err := Of(j)
	if err != nil {
		t.Fatal(err)
	}
	reports, err := Inspect(t.Context(), found, 10)
	if v := Judge(reports); err != nil || !v.Valid || v.Documents != 8+2 {
		t.Errorf("%+v, %v", v, err)
	}
}

// A fault of a file is named with its line, before a job and in it.
func TestGraphFaults(t *testing.T) {
	const two = "{\"id\": \"a\", \"label\": 1, \"features\": [1]}\n{\"id\": \"b\", \"label\": 2, \"features\": [1]}\n"
	for _, c := range []struct {
		lines, edges, file string
	}{{two + "{\"id\": \"c\"}\n", "source,target\na,b\n", "nodes.jsonl"}, {two, "source,target\na,b\na\n",
		"edges.csv"}} {
		j := graphJob(t, c.lines, c.edges)
		var list *problem.ErrorList
		if _, err := GraphOf(j); !errors.As(err, &list) || !strings.Contains(err.Error(), c.file+":3") {
			t.Errorf("%s: %v", c.file, err)
		}
		found, err := Of(j)
		if err != nil {
			t.Fatal(err)
		}
		reports, err := Inspect(t.Context(), found, 10)
		if err != nil {
			t.Fatal(err)
		}
		if v := Judge(reports); len(v.Faults) != 1 || v.Faults[0].File != c.file || v.Faults[0].Line != 3 {
			t.Errorf("%s: %+v", c.file, v)
		}
	}
}
