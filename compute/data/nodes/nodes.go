// Package nodes reads a graph from lines of JSON and from CSV: nodes with a class and features, and the edges between
// them. It says what is wrong with a file, and in which line. It opens no files, and computes nothing of the graph.
package nodes

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/data/source"
)

// Limits of a graph. The features are one dense tensor of a job, which travels to every worker.
const (
	MaxNodes    = 1 << 16
	MaxEdges    = 1 << 20 // in the files
	MaxFeatures = 1 << 14 // of a node
	MaxValues   = 1 << 25 // nodes times features: 128 MiB of float32

	maxName = 256 // bytes of an id or of a class
)

// ErrGraph is wrapped by every reason why files are no graph that can be used.
var ErrGraph = errors.New("no usable graph")

// Graph has its nodes in the order of the files, numbered from 0.
type Graph struct {
	IDs      []string
	Classes  []string    // of each node; "": none
	Features [][]float32 // of each node, all of one length
	// Edges lead from their first node to their second: ascending, without repetitions, and without edges of a node to
	// itself. An undirected graph has both directions of each.
	Edges [][2]int32
}

// RowTokens is how many tokens an example has: its class, its node, and zeros. A tile of the tokens of a step, which is
// shown in a dispute with a proof for every example in it, then has few enough of them.
const RowTokens = 8

// Row is the example of a node.
func Row(class, node uint32) []uint32 {
	return append([]uint32{class, node}, make([]uint32, RowTokens-2)...)
}

// Width is how many features a node has.
func (g *Graph) Width() int { return len(g.Features[0]) }

// Labels are the names of the classes, ascending.
func (g *Graph) Labels() (labels []string) {
	for _, c := range g.Classes {
		if c != "" {
			labels = append(labels, c)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// Read reads the graph in files of the formats source.JSONL and source.CSV, of which each has nodes, edges or, as lines
// of JSON, both. Edges count in both directions unless the graph is directed. The error wraps ErrGraph, or is a
// *source.Error.
func Read(files []source.File, directed bool) (*Graph, error) {
	r := reader{index: map[string]int32{}}
	for _, f := range files {
		if err := each(f, r.node, nil); err != nil {
			return nil, err
		}
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := each(f, nil, r.edge); err != nil {
			return nil, err
		}
	}
	if !directed {
		for _, e := range r.Edges {
			r.Edges = append(r.Edges, [2]int32{e[1], e[0]})
		}
	}
	slices.SortFunc(r.Edges, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	if r.Edges = slices.Compact(r.Edges); len(r.Edges) == 0 {
		return nil, fmt.Errorf("%w: there is no edge between two nodes", ErrGraph)
	}
	return &r.Graph, nil
}

// Count counts the nodes and the edges of a file, up to the first that cannot be read.
func Count(f source.File) (nodes, edges int, err error) {
	err = each(f, func(node) error { nodes++; return nil }, func(string, string) error { edges++; return nil })
	return nodes, edges, err
}

// reader puts a graph together.
type reader struct {
	Graph
	index  map[string]int32 // of nodes, by their ids
	sparse [][]feature
	width  int      // of the features so far
	dense  int      // features of the nodes that list all of them; 0: there is none
	values int      // features in memory
	lines  int      // edges in the files
	names  []string // of features, in the first file of CSV
}

// node is a node of a file.
type node struct {
	id, class string
	features  []float32 // all of them; nil: they are sparse
	sparse    []feature
	names     []string // of the columns of features; nil: not from CSV
}

// feature is one that is not 0, by its place.
type feature struct {
	place int32
	value float32
}

func (r *reader) node(n node) error {
	if _, known := r.index[n.id]; known {
		return fmt.Errorf("%w: there is a node %q already", ErrGraph, n.id)
	}
	if len(r.IDs) == MaxNodes {
		return fmt.Errorf("%w: at most %d nodes are read", ErrGraph, MaxNodes)
	}
	if k := len(n.features); n.features != nil {
		if r.dense > 0 && r.dense != k {
			return fmt.Errorf("%w: the node %q has %d features, and one before it %d", ErrGraph, n.id, k, r.dense)
		}
		r.dense, r.width = k, max(r.width, k)
	}
	if n.names != nil && r.names != nil && !slices.Equal(n.names, r.names) {
		return fmt.Errorf("%w: the columns of features are %.80q here, and %.80q in a file before it: give all files the "+
			"same columns in one order", ErrGraph, n.names, r.names)
	}
	if r.names == nil {
		r.names = n.names
	}
	for _, f := range n.sparse {
		r.width = max(r.width, int(f.place)+1)
	}
	r.values += len(n.features) + len(n.sparse)
	if r.values > MaxValues || (len(r.IDs)+1)*r.width > MaxValues {
		return fmt.Errorf("%w: at most %d features of all nodes are read", ErrGraph, MaxValues)
	}
	r.index[n.id] = int32(len(r.IDs))
	r.IDs, r.Classes = append(r.IDs, n.id), append(r.Classes, n.class)
	r.Features, r.sparse = append(r.Features, n.features), append(r.sparse, n.sparse)
	return nil
}

// finish writes out all features once their number is known.
func (r *reader) finish() error {
	switch n := len(r.IDs); {
	case n < 2:
		return fmt.Errorf("%w: there are fewer than two nodes", ErrGraph)
	case r.width == 0:
		return fmt.Errorf("%w: no node has features", ErrGraph)
	case r.dense > 0 && r.width > r.dense:
		return fmt.Errorf("%w: one node has %d features, another has a feature %d", ErrGraph, r.dense, r.width-1)
	}
	for i, own := range r.sparse {
		if r.Features[i] != nil {
			continue
		}
		r.Features[i] = make([]float32, r.width)
		for _, f := range own {
			r.Features[i][f.place] = f.value
		}
	}
	if k := len(r.Labels()); k < 2 {
		return fmt.Errorf("%w: its nodes have %d classes, and at least two are needed", ErrGraph, k)
	}
	return nil
}

func (r *reader) edge(from, to string) error {
	if r.lines++; r.lines > MaxEdges {
		return fmt.Errorf("%w: at most %d edges are read", ErrGraph, MaxEdges)
	}
	var e [2]int32
	for i, id := range []string{from, to} {
		var known bool
		if e[i], known = r.index[id]; !known {
			return fmt.Errorf("%w: the edge ends at %q, and there is no such node", ErrGraph, id)
		}
	}
	if e[0] != e[1] {
		r.Edges = append(r.Edges, e)
	}
	return nil
}
