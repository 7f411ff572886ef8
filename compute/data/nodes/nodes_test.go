package nodes

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/source"
)

// file is one of lines of JSON, or of CSV if its text is none.
func file(name, text string) source.File {
	f := source.File{Format: source.JSONL, Name: name, Data: []byte(text)}
	if strings.HasPrefix(strings.TrimPrefix(name, "packed-"), "csv") {
		f.Format = source.CSV
	}
	return f
}

const (
	someNodes = `{"id": "a", "label": "red", "features": [1, 0, 0.5]}
{"id": 7, "label": 3, "features": {"1": 2}}

{"id": "c", "label": null, "features": [0, 0, 0]}
{"id": "d", "features": {}}
`
	someEdges = "source,target\na,7\n7,a\n7,c\nd,d\n7,c\n"
)

var some = &Graph{IDs: []string{"a", "7", "c", "d"}, Classes: []string{"red", "3", "", ""},
	Features: [][]float32{{1, 0, 0.5}, {0, 2, 0}, {0, 0, 0}, {0, 0, 0}},
	Edges:    [][2]int32{{0, 1}, {1, 0}, {1, 2}, {2, 1}}}

// The same graph is read from lines of JSON, from CSV, packed, and in any order of its files.
func TestRead(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(someEdges)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const rows = "\ufefflabel,x,y,id,\"z\"\nred,1,0,a,0.5\n3,0,2e0,7,0\n,0,0,c,0\n,0,0,d,\"0\"\n"
	for name, files := range map[string][]source.File{
		"JSON and CSV": {file("nodes", someNodes), file("csv", someEdges)},
		"edges first":  {file("csv", someEdges), file("nodes", someNodes)},
		"CSV":          {file("csv", rows), file("csv", someEdges)},
		"packed":       {file("csv", rows), file("packed-csv.gz", packed.String())},
		"one file": {file("all", "{\"source\": \"7\", \"target\": \"c\"}\n"+someNodes+
			"{\"source\": \"a\", \"target\": 7}")},
	} {
		g, err := Read(files, false)
		if err != nil || !reflect.DeepEqual(g, some) {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
		if err == nil && (!slices.Equal(g.Labels(), []string{"3", "red"}) || g.Width() != 3) {
			t.Errorf("%s: labels %q, width %d", name, g.Labels(), g.Width())
		}
	}
	g, err := Read([]source.File{file("nodes", someNodes), file("csv", someEdges)}, true)
	if err != nil || !slices.Equal(g.Edges, [][2]int32{{0, 1}, {1, 0}, {1, 2}}) {
		t.Errorf("directed: %+v, %v", g, err)
	}
	if n, e, err := Count(file("csv", someEdges)); n != 0 || e != 5 || err != nil {
		t.Errorf("%d nodes, %d edges, %v", n, e, err)
	}
}

// Files that are no graph are refused with the line.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ nodes, edges, want string }{
		{someNodes, "source,target\na,b\n", "csv:2: no usable graph: the edge ends at \"b\""},
		{someNodes, "source,target\na,7\na\n", "csv:3"},
		{someNodes, "source,target,weight\na,7,1\n", "csv:1: no usable graph: the first row names neither"},
		{someNodes, "source,target\na,\n", "csv:2"},
		{someNodes, "source,target\nd,d\n", "no edge between"},
		{someNodes, "", "no edge between"},
		{someNodes + `{"id": "a", "features": [1, 2, 3]}`, someEdges, "nodes:6: no usable graph: there is a node \"a\""},
		{someNodes + `{"id": "e", "features": [1, 2]}`, someEdges, "nodes:6: no usable graph: the node \"e\" has 2"},
		{someNodes + `{"id": "e", "features": {"3": 1}}`, someEdges, "has a feature 3"},
		{someNodes + `{"id": "e", "features": {"01": 1}}`, someEdges, "nodes:6"},
		{someNodes + `{"id": "e", "features": {"16384": 1}}`, someEdges, "nodes:6"},
		{someNodes + `{"id": "e", "features": [1, null, 2]}`, someEdges, "feature 1 is null"},
		{someNodes + `{"id": "e", "features": [1, "2", 2]}`, someEdges, "nodes:6"},
		{someNodes + `{"id": "e", "features": [1e99, 2, 3]}`, someEdges, "nodes:6"},
		{someNodes + `{"id": "e", "features": []}`, someEdges, "0 features"},
		{someNodes + `{"id": "e"}`, someEdges, "\"features\" is neither"},
		{someNodes + `{"id": ["e"], "features": [1, 2, 3]}`, someEdges, "\"id\" is neither"},
		{someNodes + `{"id": "", "features": [1, 2, 3]}`, someEdges, "\"id\" is neither"},
		{someNodes + `{"id": "e", "lable": 1, "features": [1, 2, 3]}`, someEdges, "the key \"lable\""},
		{someNodes + `{"source": "a", "target": "c", "weight": 2}`, someEdges, "the key \"weight\""},
		{someNodes + `{"source": "a"}`, someEdges, "nodes:6"},
		{someNodes + `[1]`, someEdges, "nodes:6"},
		{"", someEdges, "fewer than two nodes"},
		{`{"id": "a", "features": {}}` + "\n" + `{"id": "7", "features": {}}`, "source,target\na,7\n",
			"no node has features"},
		{`{"id": "a", "label": 1, "features": [1]}` + "\n" + `{"id": "7", "features": [1]}`, "source,target\na,7\n",
			"1 classes"},
	} {
		_, err := Read([]source.File{file("nodes", c.nodes), file("csv", c.edges)}, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
	for want, rows := range map[string]string{
		"csv:3: no usable graph: the column \"x\" has \"two\"": "id,x\na,1\nb,two\n",
		"has \"Inf\"":       "id,x\na,Inf\n",
		"has \"\"":          "id,x\na,\n",
		"csv:2":             "id,x\n,1\n",
		"no column with a":  "id,label\na,1\n",
		"names neither":     "x,y\n1,2\n",
		"csv:4":             "id,x\n\"a\nb\",1\nc,1,2\n",
		"16386 columns":     "id,label" + strings.Repeat(",x", MaxFeatures) + "\n",
		"not as text":       "",
		"bare \" in non-qu": "id,x\na,1\"2\n",
	} {
		f := file("csv", rows)
		if rows == "" {
			f.Format = source.Text
		}
		var at *source.Error
		if _, err := Read([]source.File{f}, false); !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// Graphs beyond a limit are refused with the limit.
func TestLimits(t *testing.T) {
	var many strings.Builder
	for i := range MaxNodes + 1 {
		fmt.Fprintf(&many, "{\"id\": %d, \"label\": %d, \"features\": [1]}\n", i, i%2)
	}
	wide := strings.ReplaceAll(someNodes, `{"1": 2}`, fmt.Sprintf(`{"%d": 2}`, MaxFeatures-1))
	wide = strings.ReplaceAll(strings.ReplaceAll(wide, "[1, 0, 0.5]", "{}"), "[0, 0, 0]", "{}")
	var large strings.Builder
	large.WriteString(wide)
	for i := range MaxValues / MaxFeatures {
		fmt.Fprintf(&large, "{\"id\": \"n%d\", \"features\": {}}\n", i)
	}
	for want, text := range map[string]string{
		fmt.Sprintf("nodes:%d: no usable graph: at most %d nodes", MaxNodes+1, MaxNodes): many.String(),
		fmt.Sprintf("at most %d features of all", MaxValues):                             large.String(),
	} {
		if _, err := Read([]source.File{file("nodes", text)}, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	edges := "source,target\n" + strings.Repeat("a,c\n", MaxEdges+1)
	_, err := Read([]source.File{file("nodes", someNodes), file("csv", edges)}, false)
	if want := fmt.Sprintf("csv:%d: no usable graph: at most %d edges", MaxEdges+2, MaxEdges); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v", want, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(someNodes), []byte(someEdges))
	f.Add([]byte("{\"id\": 1, \"label\": 2, \"features\": [3]}\n{\"source\": 1, \"target\": 1}"),
		[]byte("id,label,x\na,b,1\n"))
	f.Fuzz(func(t *testing.T, lines, rows []byte) {
		g, err := Read([]source.File{file("nodes", string(lines)), file("csv", string(rows))}, false)
		if err != nil {
			return
		}
		if n := len(g.IDs); n != len(g.Classes) || n != len(g.Features) || len(g.Labels()) < 2 {
			t.Fatalf("%+v", g)
		}
		for _, own := range g.Features {
			if len(own) != g.Width() {
				t.Fatalf("%+v", g)
			}
		}
		for _, e := range g.Edges {
			if min(e[0], e[1]) < 0 || int(max(e[0], e[1])) >= len(g.IDs) || e[0] == e[1] ||
				!slices.Contains(g.Edges, [2]int32{e[1], e[0]}) {
				t.Fatalf("%+v", g)
			}
		}
	})
}

// Features of CSV go by their columns, so files with other columns, or in another order, are not one graph.
func TestColumnsOfFilesAgree(t *testing.T) {
	edges := file("csv", "source,target\na,b\n")
	first, same := file("csv", "id,label,x,y\na,1,2,3\n"), file("csv", "label,x,id,y\n2,4,b,5\n")
	g, err := Read([]source.File{first, same, edges}, false)
	if err != nil || !reflect.DeepEqual(g.Features, [][]float32{{2, 3}, {4, 5}}) {
		t.Errorf("%+v, %v", g, err)
	}
	_, err = Read([]source.File{first, file("csv", "id,label,y,x\nb,2,4,5\n"), edges}, false)
	if !errors.Is(err, ErrGraph) || !strings.Contains(err.Error(), `["y" "x"] here, and ["x" "y"]`) {
		t.Errorf("another order: %v", err)
	}
}

// A file is refused before it takes much memory.
func TestReadingIsBounded(t *testing.T) {
	open := file("csv", "id,x\na,1\n\"b"+strings.Repeat("x,1\n", maxRecord/2))
	if _, err := Read([]source.File{open}, false); !errors.Is(err, ErrGraph) ||
		!strings.Contains(err.Error(), "quotation") {
		t.Errorf("a quotation mark without its partner: %v", err)
	}
	var wide strings.Builder
	for i := range MaxValues/MaxFeatures + 1 { // one node more than there may be of this width
		fmt.Fprintf(&wide, "{\"id\": %d, \"features\": {\"%d\": 1}}\n", i, MaxFeatures-1)
	}
	if _, err := Read([]source.File{file("nodes", wide.String())}, false); !errors.Is(err, ErrGraph) ||
		!strings.Contains(err.Error(), fmt.Sprintf("nodes:%d:", MaxValues/MaxFeatures+1)) {
		t.Errorf("too many features: %v", err)
	}
}
