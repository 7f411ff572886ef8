package dataset

import (
	"errors"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/nodes"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/node/dataset/fault"
)

// Graph is the graph of a job, and the examples of its nodes.
type Graph struct {
	*nodes.Graph
	Corpus *data.Corpus // a nodes.Row for each node that has a class
	Labels []string     // of the classes, ascending
}

// GraphOf reads the graph of a job. The error is a *problem.ErrorList.
func GraphOf(j *job.Job) (*Graph, error) {
	sources, err := Sources(j)
	if err != nil {
		return nil, err
	}
	read, err := nodes.Read(sources, j.Graph.Directed)
	if err != nil {
		return nil, j.Refuse("datasets", problem.NoData, "the data cannot be used", err,
			`give nodes as {"id": ..., "label": ..., "features": [...]} and edges as {"source": ..., "target": ...}, one a `+
				"line, or both as csv with columns of these names")
	}
	g := &Graph{Graph: read, Labels: read.Labels()}
	classes := map[string]uint32{}
	for i, label := range g.Labels {
		classes[label] = uint32(i)
	}
	var rows [][]uint32
	for i, class := range g.Classes {
		if class != "" {
			rows = append(rows, nodes.Row(classes[class], uint32(i)))
		}
	}
	g.Corpus, err = data.Rows(rows, uint32(max(256, len(g.IDs))), j.Seed, j.ValSetSize)
	return g, err
}

// corpusOf is the data of a job that classifies or encodes, in rows of the given number of tokens. The error is a
// *problem.ErrorList.
func corpusOf(j *job.Job) (corpus *data.Corpus, tokens int, err error) {
	switch {
	case j.Task == spec.TaskEmbed:
		p, err := PairsOf(j)
		if err != nil {
			return nil, 0, err
		}
		return p.Corpus, p.Tokens(), nil
	case j.Task == spec.TaskReward:
		p, err := PreferencesOf(j)
		if err != nil {
			return nil, 0, err
		}
		return p.Corpus, 2 * j.SequenceLen, nil
	case j.ClassifiesText():
		t, err := TextsOf(j)
		if err != nil {
			return nil, 0, err
		}
		return t.Corpus, 1 + j.SequenceLen, nil
	case j.Task == spec.TaskGraph:
		g, err := GraphOf(j)
		if err != nil {
			return nil, 0, err
		}
		return g.Corpus, nodes.RowTokens, nil
	}
	p, err := PicturesOf(j)
	if err != nil {
		return nil, 0, err
	}
	return p.Corpus, p.Tokens(), nil
}

// inspectRows reports on a CSV file of a graph, up to its first fault.
func inspectRows(s source.File, r Report) Report {
	some, edges, err := nodes.Count(s)
	r.Documents, r.Field, r.Faults, r.MoreFaults = some+edges, "", []fault.Fault{}, 0
	if at := (*source.Error)(nil); errors.As(err, &at) {
		r.Faults = append(r.Faults, fault.Fault{File: at.Name, Line: at.Line, Why: at.Err.Error()})
	}
	return r
}
