package hub

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxBody bounds a request.
const maxBody = 64 << 10

// info is a repository as /api/models tells of it.
type info struct {
	ID       string    `json:"id"`
	ModelID  string    `json:"modelId"`
	Author   string    `json:"author,omitempty"`
	SHA      string    `json:"sha"`
	Modified time.Time `json:"lastModified"`
	Private  bool      `json:"private"`
	Gated    bool      `json:"gated"`
	Disabled bool      `json:"disabled"`
	Task     string    `json:"pipeline_tag"`
	Library  string    `json:"library_name"`
	Tags     []string  `json:"tags"`
	Likes    int       `json:"likes"`
	Pulled   int       `json:"downloads"`
	Siblings []sibling `json:"siblings"`
}

type sibling struct {
	Name string `json:"rfilename"`
	Size int64  `json:"size"`
	Blob string `json:"blobId"`
}

func (r *repo) info(now *state) info {
	i := info{ID: r.name, ModelID: r.name, SHA: now.commit, Modified: now.at, Task: "text-generation",
		Library: "transformers", Tags: []string{"starling"}}
	if owner, _, ok := strings.Cut(r.name, "/"); ok {
		i.Author = owner
	}
	for _, e := range now.files {
		i.Siblings = append(i.Siblings, sibling{e.path, e.size, e.git})
	}
	return i
}

// list answers /api/models.
func (s *Server) list(w http.ResponseWriter) {
	all := []info{}
	for _, r := range s.repos {
		if now, err := r.now(); err == nil {
			all = append(all, r.info(now))
		}
	}
	slices.SortFunc(all, func(a, b info) int { return strings.Compare(a.ID, b.ID) })
	reply(w, http.StatusOK, all)
}

// api answers /api/models/{repository}, and below it revision/{revision}, tree/{revision}/{path} and
// paths-info/{revision}.
func (s *Server) api(w http.ResponseWriter, q *http.Request, parts []string) {
	if len(parts) == 0 {
		refuse(w, http.StatusMethodNotAllowed, "BadRequest", "Models are only read here")
		return
	}
	name, rest := s.split(parts)
	verb, revision, under := "", Head, ""
	if len(rest) > 0 {
		verb = rest[0]
	}
	if len(rest) > 1 {
		revision, under = rest[1], strings.Join(rest[2:], "/")
	}
	r, now := s.at(w, name, revision)
	if r == nil {
		return
	}
	switch {
	case verb == "" && q.Method == http.MethodGet, verb == "revision" && q.Method == http.MethodGet:
		reply(w, http.StatusOK, r.info(now))
	case verb == "tree" && q.Method == http.MethodGet:
		s.tree(w, now, under, q.URL.Query().Get("recursive") == "true" || q.URL.Query().Get("recursive") == "1")
	case verb == "paths-info" && q.Method == http.MethodPost:
		s.paths(w, q, now)
	default:
		refuse(w, http.StatusNotFound, "EntryNotFound", "There is no such thing about a model")
	}
}

// node is a file or folder of a tree.
type node struct {
	Type string `json:"type"`
	OID  string `json:"oid,omitempty"`
	Size int64  `json:"size"`
	Path string `json:"path"`
	LFS  *lfs   `json:"lfs,omitempty"`
}

type lfs struct {
	OID     string `json:"oid"`
	Size    int64  `json:"size"`
	Pointer int    `json:"pointerSize"`
}

func (e entry) node() node {
	n := node{Type: "file", OID: e.git, Size: e.size, Path: e.path}
	if e.large() {
		n.LFS = &lfs{OID: e.sha256, Size: e.size, Pointer: 134}
	}
	return n
}

// tree lists a folder, with all below it if recursive.
func (s *Server) tree(w http.ResponseWriter, now *state, under string, recursive bool) {
	out, folders := []node{}, map[string]bool{}
	for _, e := range now.files {
		rest := e.path
		if under != "" {
			var ok bool
			if rest, ok = strings.CutPrefix(e.path, under+"/"); !ok {
				continue
			}
		}
		if folder, _, ok := strings.Cut(rest, "/"); ok {
			full := strings.TrimPrefix(under+"/"+folder, "/")
			if !folders[full] {
				folders[full] = true
				out = append(out, node{Type: "directory", Path: full})
			}
			if !recursive {
				continue
			}
		}
		out = append(out, e.node())
	}
	if len(out) == 0 {
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	reply(w, http.StatusOK, out)
}

// paths tells of the files that a request names, and leaves out those that are not there.
func (s *Server) paths(w http.ResponseWriter, q *http.Request, now *state) {
	var wanted struct {
		Paths []string `json:"paths"`
	}
	q.Body = http.MaxBytesReader(w, q.Body, maxBody)
	if strings.HasPrefix(q.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		if err := q.ParseForm(); err == nil {
			wanted.Paths = q.PostForm["paths"]
		}
	} else if err := json.NewDecoder(q.Body).Decode(&wanted); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", "Send {\"paths\":[...]} as JSON")
		return
	}
	out := []node{}
	for _, e := range now.files {
		if slices.Contains(wanted.Paths, e.path) {
			out = append(out, e.node())
		}
	}
	reply(w, http.StatusOK, out)
}
