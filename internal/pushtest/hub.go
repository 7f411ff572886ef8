package pushtest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Token is that of the one account of a Hub.
const Token = "hf_0123456789"

// Repo is a repository of a Hub.
type Repo struct {
	Private bool
	Files   map[string][]byte
	Commits []string // titles
}

// Hub is a server with the interface of the Hugging Face Hub for uploads.
type Hub struct {
	URL      string
	Chunk    int64 // larger files are sent in parts of it
	ReadOnly bool  // the token may not write
	// called before a request is served: a status other than 0 is the answer, and -1 breaks the connection
	Fault func(r *http.Request, n int) int

	mu    sync.Mutex
	repos map[string]*Repo
	large map[string][]byte         // by digest
	parts map[string]map[int][]byte // by digest
	count int
	puts  int
}

// NewHub starts a hub without repositories, and sets the environment of its clients.
func NewHub(t testing.TB) *Hub {
	h := &Hub{Chunk: 1 << 20, repos: map[string]*Repo{}, large: map[string][]byte{}, parts: map[string]map[int][]byte{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.URL = server.URL
	t.Setenv("HF_ENDPOINT", server.URL)
	t.Setenv("HF_TOKEN", Token)
	return h
}

// Repo returns a copy of a repository; nil: there is none.
func (h *Hub) Repo(name string) *Repo {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.repos[name]
	if r == nil {
		return nil
	}
	return &Repo{Private: r.Private, Files: maps.Clone(r.Files), Commits: append([]string(nil), r.Commits...)}
}

// Puts is the number of bodies of large files, or parts of them, that were taken.
func (h *Hub) Puts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.puts
}

// ServeHTTP implements http.Handler.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.count++
	n, fault := h.count, h.Fault
	h.mu.Unlock()
	if fault != nil {
		switch status := fault(r, n); {
		case status < 0:
			_, _ = io.CopyN(io.Discard, r.Body, 1<<10)
			panic(http.ErrAbortHandler)
		case status > 0:
			http.Error(w, "busy", status)
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if name, ok := strings.CutPrefix(r.URL.Path, "/store/"); ok { // the address is its own authority
		h.store(w, r, name, body)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+Token {
		fail(w, http.StatusUnauthorized, "Invalid username or password.")
		return
	}
	if h.ReadOnly {
		fail(w, http.StatusForbidden, "Forbidden: pass a token with write access")
		return
	}
	if r.Method != http.MethodPost {
		fail(w, http.StatusMethodNotAllowed, "POST is wanted")
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/api/repos/create":
		h.create(w, body)
	case len(path) == 6 && path[0] == "api" && path[1] == "models" && path[5] == "main":
		repo := h.repos[path[2]+"/"+path[3]]
		switch {
		case repo == nil:
			fail(w, http.StatusNotFound, "Repository not found")
		case path[4] == "preupload":
			preupload(w, body)
		case path[4] == "commit":
			h.commit(w, r, repo, body)
		default:
			fail(w, http.StatusNotFound, "no such operation")
		}
	case strings.HasSuffix(r.URL.Path, ".git/info/lfs/objects/batch"):
		h.batch(w, r, body)
	case r.URL.Path == "/verify":
		h.verify(w, body)
	default:
		fail(w, http.StatusNotFound, "no such operation")
	}
}

func fail(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": text})
}

// strictly decodes JSON without unknown keys.
func strictly(w http.ResponseWriter, body []byte, into any) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}

func (h *Hub) create(w http.ResponseWriter, body []byte) {
	var asked struct {
		Type, Name, Organization, Visibility string
		Private                              bool
	}
	if !strictly(w, body, &asked) {
		return
	}
	name := asked.Organization + "/" + asked.Name
	if h.repos[name] != nil {
		fail(w, http.StatusConflict, "You already created this model repo")
		return
	}
	h.repos[name] = &Repo{Private: asked.Private || asked.Visibility == "private", Files: map[string][]byte{}}
	fmt.Fprintf(w, `{"url":%q}`, h.URL+"/"+name)
}

func preupload(w http.ResponseWriter, body []byte) {
	var asked struct {
		GitAttributes string
		Files         []struct {
			Path   string
			Size   int64
			Sample []byte
		}
	}
	if !strictly(w, body, &asked) {
		return
	}
	type mode struct {
		Path   string `json:"path"`
		Mode   string `json:"uploadMode"`
		Ignore bool   `json:"shouldIgnore"`
	}
	var modes []mode
	for _, f := range asked.Files {
		if int64(len(f.Sample)) != min(f.Size, 512) {
			fail(w, http.StatusBadRequest, "the sample is not the beginning of the file")
			return
		}
		m := mode{Path: f.Path, Mode: "regular"}
		if strings.HasSuffix(f.Path, ".safetensors") || strings.HasSuffix(f.Path, ".gguf") || f.Size > 10<<20 {
			m.Mode = "lfs"
		}
		modes = append(modes, m)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"files": modes})
}

func (h *Hub) batch(w http.ResponseWriter, r *http.Request, body []byte) {
	var asked struct {
		Operation string
		Transfers []string
		Hash      string `json:"hash_algo"`
		Ref       struct{ Name string }
		Objects   []struct {
			OID  string
			Size int64
		}
	}
	if !strictly(w, body, &asked) {
		return
	}
	if asked.Operation != "upload" || r.Header.Get("Content-Type") != "application/vnd.git-lfs+json" ||
		asked.Ref.Name != "main" {
		fail(w, http.StatusUnprocessableEntity, "this is no upload of large files")
		return
	}
	type action struct {
		Href   string            `json:"href"`
		Header map[string]string `json:"header,omitempty"`
	}
	type object struct {
		OID     string            `json:"oid"`
		Size    int64             `json:"size"`
		Actions map[string]action `json:"actions,omitempty"`
	}
	var out []object
	for _, o := range asked.Objects {
		x := object{OID: o.OID, Size: o.Size}
		if _, has := h.large[o.OID]; !has {
			up := action{Href: h.URL + "/store/" + o.OID + "?signature=secret"}
			if o.Size > h.Chunk {
				up.Header = map[string]string{"chunk_size": fmt.Sprint(h.Chunk)}
				for i := int64(0); i*h.Chunk < o.Size; i++ {
					up.Header[fmt.Sprintf("%05d", i+1)] = fmt.Sprintf("%s/store/%s?signature=secret&part=%d", h.URL, o.OID, i+1)
				}
			}
			x.Actions = map[string]action{"upload": up, "verify": {Href: h.URL + "/verify"}}
		}
		out = append(out, x)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": out})
}

// store takes a large file, or a part of one, or joins its parts.
func (h *Hub) store(w http.ResponseWriter, r *http.Request, oid string, body []byte) {
	sum := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	part, _ := strconv.Atoi(r.URL.Query().Get("part"))
	switch {
	case r.URL.Query().Get("signature") != "secret" || r.Header.Get("Authorization") != "":
		fail(w, http.StatusForbidden, "the address is not signed, or a token is sent where it does not belong")
	case r.Method == http.MethodPut && part > 0:
		if h.parts[oid] == nil {
			h.parts[oid] = map[int][]byte{}
		}
		h.parts[oid][part] = body
		h.puts++
		w.Header().Set("Etag", fmt.Sprintf(`"part%d-%s"`, part, sum(body)[:8]))
	case r.Method == http.MethodPut && sum(body) == oid:
		h.large[oid] = body
		h.puts++
	case r.Method == http.MethodPost:
		var asked struct {
			OID   string
			Parts []struct {
				PartNumber int
				ETag       string
			}
		}
		if !strictly(w, body, &asked) {
			return
		}
		var whole []byte
		for i, p := range asked.Parts {
			b := h.parts[oid][p.PartNumber]
			if p.PartNumber != i+1 || p.ETag != fmt.Sprintf(`"part%d-%s"`, i+1, sum(b)[:8]) {
				fail(w, http.StatusBadRequest, "a part is another")
				return
			}
			whole = append(whole, b...)
		}
		if sum(whole) != oid {
			fail(w, http.StatusBadRequest, "the digest is another")
			return
		}
		h.large[oid] = whole
	default:
		fail(w, http.StatusBadRequest, "the digest is another")
	}
}

func (h *Hub) verify(w http.ResponseWriter, body []byte) {
	var asked struct {
		OID  string
		Size int
	}
	if !strictly(w, body, &asked) {
		return
	}
	if b, ok := h.large[asked.OID]; !ok || len(b) != asked.Size {
		fail(w, http.StatusNotFound, "it is not there")
	}
}

func (h *Hub) commit(w http.ResponseWriter, r *http.Request, repo *Repo, body []byte) {
	if r.Header.Get("Content-Type") != "application/x-ndjson" {
		fail(w, http.StatusUnsupportedMediaType, "NDJSON is wanted")
		return
	}
	files, title := map[string][]byte{}, ""
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 64<<20)
	for n := 0; lines.Scan(); n++ {
		var line struct {
			Key   string
			Value struct {
				Summary, Description, ParentCommit string
				Path, Content, Encoding            string
				Algo, OID                          string
				Size                               int
			}
		}
		if !strictly(w, lines.Bytes(), &line) {
			return
		}
		v := line.Value
		text, err := base64.StdEncoding.DecodeString(v.Content)
		large, has := h.large[v.OID]
		switch {
		case n == 0 && line.Key == "header" && v.Summary != "":
			title = v.Summary
		case n > 0 && line.Key == "file" && v.Encoding == "base64" && err == nil && v.Path != "":
			files[v.Path] = text
		case n > 0 && line.Key == "lfsFile" && v.Algo == "sha256" && has && len(large) == v.Size && v.Path != "":
			files[v.Path] = large
		default:
			fail(w, http.StatusBadRequest, fmt.Sprintf("line %d of the commit is wrong", n+1))
			return
		}
	}
	maps.Copy(repo.Files, files)
	repo.Commits = append(repo.Commits, title)
	fmt.Fprintf(w, `{"success":true,"commitOid":"%040x","commitUrl":%q,"hookOutput":""}`, len(repo.Commits), h.URL)
}
