// Command communities writes the data of examples/graph.yaml: a graph of papers in four communities, whose papers cite
// each other more than those of others (a stochastic block model, Holland et al. 1983), and of each paper which words
// it has, of which those of its community are a little more frequent. A part of the papers has no class. The same seed
// draws the same graph on every machine.
//
//	go run ./scripts/communities --out examples/communities
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/starling-network/starling/compute/philox"
)

func main() {
	out := flag.String("out", "", "folder to write nodes.jsonl and edges.csv to")
	seed := flag.Uint64("seed", 1, "seed of the graph")
	count := flag.Int("count", 600, "number of papers")
	flag.Parse()
	if err := run(*out, *seed, *count); err != nil {
		fmt.Fprintln(os.Stderr, "communities:", err)
		os.Exit(1)
	}
}

func run(out string, seed uint64, count int) error {
	if out == "" || count < 2 || count > 1<<14 {
		return errors.New("give --out FOLDER and a --count of 2 to 16384")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	papers := draw(philox.New(seed, 0), count)
	for name, write := range map[string]func(io.Writer) error{
		"nodes.jsonl": func(w io.Writer) error { return writeNodes(w, papers) },
		"edges.csv":   func(w io.Writer) error { return writeEdges(w, philox.New(seed, 1), papers) },
	} {
		f, err := os.Create(filepath.Join(out, name))
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		if err := errors.Join(write(w), w.Flush(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// communities are their names, each with its share of the papers in percent.
var communities = []struct {
	name  string
	share int
}{{"algebra", 32}, {"biology", 28}, {"chemistry", 22}, {"economics", 18}}

// The settings of the drawing. Chances are in percent, but for those of citations: of as many pairs as there are
// papers.
const (
	words                  = 32 // of which each community has its own eight
	ownWord, otherWord     = 30, 20
	ownPapers, otherPapers = 24, 3
	unlabelled             = 40
)

// paper is a node.
type paper struct {
	community int
	known     bool // its class is in the file
	words     []int
}

func draw(random *philox.Reader, count int) []paper {
	chance := func(percent int) bool { return int(random.Uint64n(100)) < percent }
	papers := make([]paper, count)
	for i := range papers {
		p := &papers[i]
		for at := int(random.Uint64n(100)); at >= communities[p.community].share; p.community++ {
			at -= communities[p.community].share
		}
		p.known = !chance(unlabelled)
		for w := range words {
			if own := w/(words/len(communities)) == p.community; own && chance(ownWord) || !own && chance(otherWord) {
				p.words = append(p.words, w)
			}
		}
	}
	return papers
}

func writeNodes(w io.Writer, papers []paper) error {
	lines := json.NewEncoder(w)
	for i, p := range papers {
		line := struct {
			ID       string         `json:"id"`
			Label    *string        `json:"label"`
			Features map[string]int `json:"features"`
		}{ID: fmt.Sprintf("p%d", i), Features: map[string]int{}}
		if p.known {
			line.Label = &communities[p.community].name
		}
		for _, word := range p.words {
			line.Features[strconv.Itoa(word)] = 1
		}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

func writeEdges(w io.Writer, random *philox.Reader, papers []paper) error {
	if _, err := fmt.Fprintln(w, "source,target"); err != nil {
		return err
	}
	for i, p := range papers {
		for k := range i {
			cited := uint64(otherPapers)
			if papers[k].community == p.community {
				cited = ownPapers
			}
			if random.Uint64n(uint64(len(papers))) >= cited {
				continue
			}
			if _, err := fmt.Fprintf(w, "p%d,p%d\n", i, k); err != nil {
				return err
			}
		}
	}
	return nil
}
