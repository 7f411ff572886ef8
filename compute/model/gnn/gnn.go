// Package gnn has networks that classify the nodes of one graph: a graph convolutional network, and GraphSAGE with the
// mean of the neighbours. It reads the config.json of such a network, normalises the edges of its graph and writes its
// computation; compute/model makes programs of it.
package gnn

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/data/nodes"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/fields"
	"github.com/starling-network/starling/compute/tensor"
)

// The architectures: layers that sum each node and its neighbours, normalised by their degrees (Kipf and Welling 2017);
// layers that add a map of the node and one of the mean of its neighbours (Hamilton et al. 2017, algorithm 1 without
// the sampling of neighbours and the normalisation of line 7).
const (
	GCN  = "gcn"
	SAGE = "sage"
)

// Limits of a network.
const (
	maxWidth   = 1 << 12
	maxLayers  = 16
	maxClasses = 1 << 12

	maxMessages = 2*nodes.MaxEdges + nodes.MaxNodes
)

// Size is that of the graph of a network.
type Size struct{ Nodes, Features, Messages int }

// Network is a classifier of the nodes of one graph.
type Network struct {
	architecture string
	size         Size
	labels       []string // of the classes
	hidden       []int    // widths of the layers but the last
}

// Keys of a configuration that follow from the data.
const (
	keyNodes, keyFeatures, keyMessages, keyLabels = "num_nodes", "num_features", "num_messages", "id2label"
)

// Known reports whether an architecture is one of this package.
func Known(name string) bool { return name == GCN || name == SAGE }

// Parse reads a configuration: the keys of a config.json besides those that follow from the graph, which has the given
// size, and the labels of its classes, ascending.
func Parse(name string, config map[string]any, size Size, labels []string) (Network, error) {
	n := Network{architecture: name, size: size, labels: labels}
	if !Known(name) {
		return n, &fields.Error{Key: "model_type", Problem: fmt.Sprintf("%q classifies no nodes", name),
			Fix: "use gcn or sage"}
	}
	f := &fields.Reader{Raw: config}
	n.hidden = f.Sizes("hidden_sizes", []int{16}, maxLayers, maxWidth)
	if err := f.Finish(); err != nil {
		return n, err
	}
	return n, n.check()
}

func (n Network) check() error {
	for _, s := range []struct {
		key       string
		is, limit int
	}{{keyNodes, n.size.Nodes, nodes.MaxNodes}, {keyFeatures, n.size.Features, nodes.MaxFeatures},
		{keyMessages, n.size.Messages, maxMessages}} {
		if s.is < 1 || s.is > s.limit {
			return &fields.Error{Key: s.key, Problem: fmt.Sprintf("%d", s.is), Fix: fmt.Sprintf("there are 1 to %d", s.limit)}
		}
	}
	if all := n.size.Nodes * n.size.Features; all > nodes.MaxValues {
		return &fields.Error{Key: keyFeatures, Problem: fmt.Sprintf("%d of all nodes", all),
			Fix: fmt.Sprintf("there are at most %d", nodes.MaxValues)}
	}
	if k := len(n.labels); k < 2 || k > maxClasses {
		return &fields.Error{Key: keyLabels, Problem: fmt.Sprintf("%d classes", k),
			Fix: fmt.Sprintf("there are 2 to %d", maxClasses)}
	}
	return nil
}

// Read reads a config.json.
func Read(raw []byte) (Network, error) {
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		return Network{}, err
	}
	var known struct {
		Name     string            `json:"model_type"`
		Nodes    int               `json:"num_nodes"`
		Features int               `json:"num_features"`
		Messages int               `json:"num_messages"`
		Labels   map[string]string `json:"id2label"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return Network{}, err
	}
	labels, err := fields.Labels(known.Labels)
	if err != nil {
		return Network{}, err
	}
	for _, key := range []string{"model_type", keyNodes, keyFeatures, keyMessages, keyLabels} {
		delete(config, key)
	}
	return Parse(known.Name, config, Size{known.Nodes, known.Features, known.Messages}, labels)
}

// JSON is the config.json that Read reads.
func (n Network) JSON() []byte {
	raw, err := json.MarshalIndent(map[string]any{"model_type": n.architecture, keyNodes: n.size.Nodes,
		keyFeatures: n.size.Features, keyMessages: n.size.Messages, keyLabels: fields.Numbered(n.labels),
		"hidden_sizes": n.hidden}, "", "  ")
	if err != nil {
		panic(err) // strings and numbers
	}
	return append(raw, '\n')
}

// Architecture is the name of the kind of network.
func (n Network) Architecture() string { return n.architecture }

// Size is that of the graph.
func (n Network) Size() Size { return n.size }

// Labels are the names of the classes.
func (n Network) Labels() []string { return n.labels }

// Example implements model.Classifier: an example is a nodes.Row without its class.
func (n Network) Example() int { return nodes.RowTokens - 1 }

// Parameters counts the elements of all tensors.
func (n Network) Parameters() (count int) {
	for _, t := range n.Tensors() {
		count += t.Shape.Elements()
	}
	return count
}

// Names of the tensors of a graph.
const (
	nameSource, nameTarget, nameWeight, nameFeatures = "graph.source", "graph.target", "graph.weight", "graph.features"
)

// Frozen implements model.Classifier: the messages along edges, int32 "graph.source" and "graph.target" [messages] and
// float32 "graph.weight" [messages], and float32 "graph.features" [nodes, features]. Messages has their values.
func (n Network) Frozen() []architecture.Named {
	of := func(name string, t tensor.DType, dims ...int) architecture.Named {
		return architecture.Named{Name: name, Shape: tensor.Make(t, dims...)}
	}
	return []architecture.Named{of(nameSource, tensor.Int32, n.size.Messages), of(nameTarget, tensor.Int32,
		n.size.Messages), of(nameWeight, tensor.Float32, n.size.Messages),
		of(nameFeatures, tensor.Float32, n.size.Nodes, n.size.Features)}
}

// Tensors lists the tensors with the names and layouts of PyTorch Geometric: for layer i from 1 of a GCN
// "conv<i>.lin.weight" [out, in] and "conv<i>.bias" [out]; of a SAGE "conv<i>.lin_l.weight" [out, in] and
// "conv<i>.lin_l.bias" [out], which are of the neighbours, and "conv<i>.lin_r.weight" [out, in] of the node itself.
// Weights begin with the variance of Glorot and Bengio (2010, equation 12).
func (n Network) Tensors() (list []architecture.Named) {
	in := n.size.Features
	for i, out := range append(slices.Clone(n.hidden), len(n.labels)) {
		name, std := fmt.Sprintf("conv%d.", i+1), math.Sqrt(2/float64(in+out))
		if n.architecture == SAGE {
			list = append(list, architecture.Normal(std, name+"lin_l.weight", out, in),
				architecture.Zeros(name+"lin_l.bias", out), architecture.Normal(std, name+"lin_r.weight", out, in))
		} else {
			list = append(list, architecture.Normal(std, name+"lin.weight", out, in), architecture.Zeros(name+"bias", out))
		}
		in = out
	}
	return list
}
