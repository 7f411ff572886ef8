// Package hub answers the part of the Hugging Face hub's HTTP interface that is for reading models, so that the loaders
// of others pull a model from a folder: /{owner}/{name}/resolve|raw/{revision}/{file} and /api/models.
//
// It serves the files of a model that it knows by name, of folders that it is given, and no others; the only revision
// of a folder is what it holds now. It writes nothing and keeps nothing.
package hub

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// files are patterns of the files of a model.
var files = []string{
	"*.safetensors", "*.gguf", "model.safetensors.index.json", "config.json", "generation_config.json", "tokenizer.json",
	"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "README.md", "lineage.jsonl",
	"receipts.jsonl", "left_layers.json",
	"adapter_config.json", "adapter/adapter_config.json", "adapter/adapter_model.safetensors",
}

// Head is the revision that every repository has besides the commit it is at.
const Head = "main"

// Server is the handler. It is made by New.
type Server struct {
	repos map[string]*repo
}

// New returns a handler of folders by their names, owner/name or name. The error says which cannot be read.
func New(folders map[string]string) (*Server, error) {
	s := &Server{repos: map[string]*repo{}}
	for name, dir := range folders {
		if strings.Count(name, "/") > 1 || !fs.ValidPath(name) || name == "." {
			return nil, fmt.Errorf("hub: %q is no name of a model: it is owner/name or name", name)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("hub: %w", err)
		}
		r := &repo{name: name, root: root}
		if _, err := r.now(); err != nil {
			return nil, errors.Join(fmt.Errorf("hub: %s: %w", dir, err), s.Close())
		}
		s.repos[name] = r
	}
	return s, nil
}

// Close lets go of the folders.
func (s *Server) Close() error {
	var errs []error
	for _, r := range s.repos {
		errs = append(errs, r.root.Close())
	}
	return errors.Join(errs...)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	if parts[0] == "api" && len(parts) > 1 && parts[1] == "models" {
		if len(parts) == 2 && read {
			s.list(w)
			return
		}
		s.api(w, r, parts[2:])
		return
	}
	name, rest := s.split(parts)
	if len(rest) < 3 || rest[0] != "resolve" && rest[0] != "raw" || !read {
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
		return
	}
	s.file(w, r, name, rest[1], strings.Join(rest[2:], "/"))
}

// split cuts a path after the name of a repository: two parts, or one if there is none of two.
func (s *Server) split(parts []string) (name string, rest []string) {
	if len(parts) > 1 && s.repos[parts[0]+"/"+parts[1]] != nil || len(parts) > 2 &&
		(parts[2] == "resolve" || parts[2] == "raw") {
		return parts[0] + "/" + parts[1], parts[2:]
	}
	return parts[0], parts[1:]
}

// repo is a folder.
type repo struct {
	name string
	root *os.Root

	mu   sync.Mutex
	last *state
}

// state is what a folder held at one moment.
type state struct {
	commit string // 40 digits, of the names and digests of all files
	at     time.Time
	files  []entry
}

type entry struct {
	path   string
	size   int64
	at     time.Time
	sha256 string
	git    string // SHA-1 of the file as a blob of git
}

// large files are what the hub keeps outside of git.
func (e entry) large() bool { return path.Ext(e.path) == ".safetensors" || path.Ext(e.path) == ".gguf" }

// now returns what the folder holds, and hashes what has changed since.
func (r *repo) now() (*state, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[string]entry{}
	if r.last != nil {
		for _, e := range r.last.files {
			known[e.path] = e
		}
	}
	next := &state{}
	for _, pattern := range files {
		names, err := fs.Glob(r.root.FS(), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			info, err := r.root.Stat(name)
			if err != nil || !info.Mode().IsRegular() {
				continue // it vanished, or leads out of the folder
			}
			e := known[name]
			if e.size != info.Size() || !e.at.Equal(info.ModTime()) || e.sha256 == "" {
				if e, err = r.read(name, info); err != nil {
					return nil, err
				}
			}
			next.files = append(next.files, e)
		}
	}
	if len(next.files) == 0 {
		return nil, errors.New("there is no file of a model")
	}
	slices.SortFunc(next.files, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	h := sha256.New()
	for _, e := range next.files {
		fmt.Fprintf(h, "%s %s\n", e.sha256, e.path)
		if e.at.After(next.at) {
			next.at = e.at
		}
	}
	next.commit = hex.EncodeToString(h.Sum(nil))[:40]
	r.last = next
	return next, nil
}

func (r *repo) read(name string, info fs.FileInfo) (entry, error) {
	f, err := r.root.Open(name)
	if err != nil {
		return entry{}, err
	}
	defer f.Close()
	whole, git := sha256.New(), sha1.New()
	fmt.Fprintf(git, "blob %d\x00", info.Size())
	if _, err := io.Copy(io.MultiWriter(whole, git), f); err != nil {
		return entry{}, err
	}
	return entry{path: name, size: info.Size(), at: info.ModTime(), sha256: hex.EncodeToString(whole.Sum(nil)),
		git: hex.EncodeToString(git.Sum(nil))}, nil
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", message)
	reply(w, status, map[string]string{"error": message})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone hears nothing
}

// at finds a repository at a revision, or answers that there is none.
func (s *Server) at(w http.ResponseWriter, name, revision string) (*repo, *state) {
	r, ok := s.repos[name]
	if !ok {
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
		return nil, nil
	}
	now, err := r.now()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "InternalError", "The folder of the model cannot be read")
		return nil, nil
	}
	if !slices.Contains([]string{Head, "HEAD", "refs/heads/" + Head, now.commit}, revision) {
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: the folder is at "+now.commit)
		return nil, nil
	}
	w.Header().Set("X-Repo-Commit", now.commit)
	return r, now
}

// file sends one file, or a part of it.
func (s *Server) file(w http.ResponseWriter, q *http.Request, name, revision, file string) {
	r, now := s.at(w, name, revision)
	if r == nil {
		return
	}
	i := slices.IndexFunc(now.files, func(e entry) bool { return e.path == file })
	if i < 0 {
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	e := now.files[i]
	f, err := r.root.Open(e.path)
	if err != nil {
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	defer f.Close()
	h := w.Header()
	digest := e.git
	if e.large() {
		digest = e.sha256
		h.Set("X-Linked-Size", fmt.Sprint(e.size))
		h.Set("X-Linked-Etag", `"`+digest+`"`)
	}
	h.Set("Etag", `"`+digest+`"`)
	h.Set("Content-Type", contentType(e.path))
	h.Set("Content-Disposition", fmt.Sprintf(`inline; filename=%q`, path.Base(e.path)))
	h.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(patient{w, http.NewResponseController(w)}, q, "", e.at, f)
}

func contentType(name string) string {
	switch path.Ext(name) {
	case ".json":
		return "application/json"
	case ".md", ".jsonl":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// patience is how long a reader may take to read what was sent to it last.
const patience = 30 * time.Second

// patient gives every write its own time, so that a large file may take long but a reader may not stop.
type patient struct {
	http.ResponseWriter
	c *http.ResponseController
}

func (p patient) Write(b []byte) (int, error) {
	_ = p.c.SetWriteDeadline(time.Now().Add(patience)) // a recorder has none
	return p.ResponseWriter.Write(b)
}
