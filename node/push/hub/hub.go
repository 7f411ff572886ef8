// Package hub puts files into a repository of the Hugging Face Hub, or of a server with the same interface, in one
// commit: large files go to its storage of large files first, whole or in parts, and a file that is there already is
// not sent. A repository that is missing is made, and is private. It is no client for Xet, the newer storage of the
// Hub, which takes files of the older protocol too.
package hub

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/starling-network/starling/node/push/parcel"
)

const (
	defaultEndpoint = "https://huggingface.co"
	branch          = "main"
	maxAsk          = 100     // files of one request
	maxInline       = 8 << 20 // bytes of a file that a commit may hold
	sample          = 512     // bytes of a file that the server sees before it chooses where the file goes
	lfsType         = "application/vnd.git-lfs+json"
)

// Client puts files into one repository.
type Client struct {
	base, repo, token string
	http              *parcel.Client
}

// FromEnvironment makes a client for the server that HF_ENDPOINT names, or the Hub, with the token HF_TOKEN.
func FromEnvironment(repo string) (*Client, error) {
	base := strings.TrimSuffix(os.Getenv("HF_ENDPOINT"), "/")
	if base == "" {
		base = defaultEndpoint
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, &parcel.Error{Code: parcel.BadTarget, What: "HF_ENDPOINT is no address",
			Fix: "write it as https://HOST, without credentials"}
	}
	token := os.Getenv("HF_TOKEN")
	if token == "" {
		return nil, &parcel.Error{Code: parcel.Credentials, What: "there is no token for " + u.Host,
			Fix: "set HF_TOKEN to a token that may write to " + repo}
	}
	return &Client{base: base, repo: repo, token: token, http: parcel.NewClient()}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.Close() }

// Address is where a folder of the repository is, for people.
func (c *Client) Address(dir string) string {
	if dir == "" {
		return c.base + "/" + c.repo
	}
	return c.base + "/" + c.repo + "/tree/" + branch + "/" + dir
}

// Put makes the repository hold files, in a folder of it, by one commit of that title. sent is called with the number
// of bytes of them that the server has.
func (c *Client) Put(ctx context.Context, dir, title string, files []parcel.File, sent func(n int64)) error {
	large, err := c.large(ctx, dir, files)
	if no := (*parcel.Error)(nil); errors.As(err, &no) && no.Code == parcel.NotFound {
		if err := c.create(ctx); err != nil {
			return err
		}
		large, err = c.large(ctx, dir, files)
	}
	if err != nil {
		return err
	}
	done := int64(0)
	for batch := range slices.Chunk(large, maxAsk) {
		if done, err = c.upload(ctx, batch, done, sent); err != nil {
			return err
		}
	}
	if err := c.commit(ctx, dir, title, files, large); err != nil {
		return err
	}
	total := int64(0)
	for _, f := range files {
		total += f.Bytes
	}
	sent(total)
	return nil
}

// create makes the repository. That another client has made it since is no error.
func (c *Client) create(ctx context.Context) error {
	owner, name, _ := strings.Cut(c.repo, "/")
	a, err := c.ask(ctx, "/api/repos/create", map[string]any{"type": "model", "organization": owner, "name": name,
		"visibility": "private", "private": true}) // the second for servers that do not know the first
	if err != nil || a.OK() || a.Status == http.StatusConflict {
		return err
	}
	return c.refusal(a)
}

// large are the files that go to the storage of large files, as the server decides.
func (c *Client) large(ctx context.Context, dir string, files []parcel.File) (large []parcel.File, _ error) {
	for batch := range slices.Chunk(files, maxAsk) {
		type begin struct {
			Path   string `json:"path"`
			Size   int64  `json:"size"`
			Sample []byte `json:"sample"`
		}
		var asked []begin
		for _, f := range batch {
			r, err := f.Open()
			if err != nil {
				return nil, err
			}
			first := make([]byte, min(f.Bytes, sample))
			_, err = io.ReadFull(r, first)
			_ = r.Close()
			if err != nil {
				return nil, parcel.OnDisk(err)
			}
			asked = append(asked, begin{path.Join(dir, f.Name), f.Bytes, first})
		}
		a, err := c.ask(ctx, "/api/models/"+c.repo+"/preupload/"+branch, map[string]any{"files": asked})
		if err != nil {
			return nil, err
		}
		var answer struct {
			Files []struct {
				Path string `json:"path"`
				Mode string `json:"uploadMode"`
			} `json:"files"`
		}
		if !a.OK() || json.Unmarshal(a.Body, &answer) != nil || len(answer.Files) != len(batch) {
			return nil, c.refusal(a)
		}
		modes := map[string]string{}
		for _, f := range answer.Files {
			modes[f.Path] = f.Mode
		}
		for _, f := range batch {
			if modes[path.Join(dir, f.Name)] == "lfs" || f.Bytes > maxInline {
				large = append(large, f)
			}
		}
	}
	return large, nil
}

// action is a request that the server asks for.
type action struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header"`
}

type object struct {
	OID     string `json:"oid"`
	Actions struct {
		Upload *action `json:"upload"`
		Verify *action `json:"verify"`
	} `json:"actions"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// upload sends files to the storage of large files; done is what was sent before, and is returned with them.
func (c *Client) upload(ctx context.Context, files []parcel.File, done int64, sent func(int64)) (int64, error) {
	type named struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	}
	var list []named
	by := map[string]parcel.File{}
	for _, f := range files {
		if _, twice := by[f.SHA256]; !twice {
			list = append(list, named{f.SHA256, f.Bytes})
		}
		by[f.SHA256] = f
	}
	a, err := c.post(ctx, c.base+"/"+c.repo+".git/info/lfs/objects/batch", lfsType, map[string]any{
		"operation": "upload", "transfers": []string{"basic", "multipart"}, "hash_algo": "sha256",
		"ref": map[string]string{"name": branch}, "objects": list}, true)
	if err != nil {
		return done, err
	}
	var answer struct {
		Objects []object `json:"objects"`
	}
	if !a.OK() || json.Unmarshal(a.Body, &answer) != nil {
		return done, c.refusal(a)
	}
	if len(answer.Objects) != len(list) {
		return done, c.malformed("it answers about other files than were asked about")
	}
	for _, o := range answer.Objects {
		f, ok := by[o.OID]
		switch {
		case !ok:
			return done, c.malformed("it answers about other files than were asked about")
		case o.Error != nil:
			return done, c.refusal(&parcel.Answer{Status: o.Error.Code, Body: []byte(o.Error.Message)})
		case o.Actions.Upload != nil:
			if err := c.send(ctx, f, o, func(n int64) { sent(done + n) }); err != nil {
				return done, err
			}
		}
		done += f.Bytes
		sent(done)
	}
	return done, nil
}

// send sends one file, whole or in the parts that the server asks for, and has the server check it.
func (c *Client) send(ctx context.Context, f parcel.File, o object, sent func(int64)) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	up := o.Actions.Upload
	if up.Header["chunk_size"] != "" {
		err = c.sendParts(ctx, f, r, *up, sent)
	} else {
		_, err = c.put(ctx, *up, io.NewSectionReader(r, 0, f.Bytes), f.Bytes, counter(0, sent))
	}
	if err != nil || o.Actions.Verify == nil {
		return err
	}
	a, err := c.post(ctx, o.Actions.Verify.Href, lfsType, map[string]any{"oid": f.SHA256, "size": f.Bytes},
		c.own(o.Actions.Verify.Href))
	if err == nil && !a.OK() {
		err = c.refusal(a)
	}
	return err
}

// counter turns numbers of bytes into their sum.
func counter(base int64, sent func(int64)) func(int64) {
	return func(n int64) {
		base += n
		sent(base)
	}
}

// sendParts sends a file in parts. Their addresses, and the one at which they are joined, are in the action: each is
// a permission by itself, and gets no token.
func (c *Client) sendParts(ctx context.Context, f parcel.File, r io.ReaderAt, up action, sent func(int64)) error {
	var size int64
	if _, err := fmt.Sscan(up.Header["chunk_size"], &size); err != nil || size < 1 {
		return c.malformed("the size of the parts is no number")
	}
	type part struct {
		Number int    `json:"partNumber"`
		ETag   string `json:"etag"`
	}
	var parts []part
	for at := int64(0); at < f.Bytes; at += size {
		number := len(parts) + 1
		href := ""
		for name, value := range up.Header { // 1, or 00001
			if strings.TrimLeft(name, "0") == fmt.Sprint(number) {
				href = value
			}
		}
		if href == "" {
			return c.malformed(fmt.Sprintf("it gives no address for part %d", number))
		}
		n := min(size, f.Bytes-at)
		a, err := c.put(ctx, action{Href: href}, io.NewSectionReader(r, at, n), n, counter(at, sent))
		if err != nil {
			return err
		}
		tag := a.Header.Get("Etag")
		if tag == "" {
			return c.malformed(fmt.Sprintf("it gives no name to part %d", number))
		}
		parts = append(parts, part{number, tag})
	}
	a, err := c.post(ctx, up.Href, lfsType, map[string]any{"oid": f.SHA256, "parts": parts}, false)
	if err == nil && !a.OK() {
		err = c.refusal(a)
	}
	return err
}

// put sends bytes to an address that the server gave.
func (c *Client) put(ctx context.Context, to action, body io.Reader, n int64,
	moved func(int64)) (*parcel.Answer, error) {
	r, err := http.NewRequest(http.MethodPut, to.Href, nil)
	if err != nil {
		return nil, c.malformed("the address for a file is none")
	}
	for name, value := range to.Header {
		r.Header.Set(name, value)
	}
	r.Header.Set("User-Agent", "starling")
	a, err := c.http.Do(ctx, r, body, n, moved)
	switch {
	case err != nil:
		return nil, err
	case a.Busy() || a.Status == http.StatusForbidden: // the address is for a limited time
		return nil, parcel.Overloaded(r.URL.Host, a)
	case !a.OK():
		return nil, parcel.Refusal(r.URL.Host, a)
	}
	return a, nil
}

// commit makes the files the next revision of the repository.
func (c *Client) commit(ctx context.Context, dir, title string, files, large []parcel.File) error {
	var body bytes.Buffer
	line := json.NewEncoder(&body)
	add := func(key string, value any) { _ = line.Encode(map[string]any{"key": key, "value": value}) } // plain values
	add("header", map[string]string{"summary": title, "description": ""})
	for _, f := range files {
		at := path.Join(dir, f.Name)
		if slices.Contains(large, f) {
			add("lfsFile", map[string]any{"path": at, "algo": "sha256", "oid": f.SHA256, "size": f.Bytes})
			continue
		}
		text, err := os.ReadFile(f.Path)
		if err != nil {
			return parcel.OnDisk(err)
		}
		add("file", map[string]any{"path": at, "encoding": "base64", "content": base64.StdEncoding.EncodeToString(text)})
	}
	r, err := http.NewRequest(http.MethodPost, c.base+"/api/models/"+c.repo+"/commit/"+branch, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-ndjson")
	r.Header.Set("Authorization", "Bearer "+c.token)
	a, err := c.do(ctx, r, body.Bytes())
	switch {
	case err != nil:
		return err
	case a.Status == http.StatusConflict || a.Status == http.StatusPreconditionFailed:
		return &parcel.Error{Code: parcel.Conflict, What: "another commit came between", Err: errors.New(a.Text())}
	case !a.OK():
		return c.refusal(a)
	}
	return nil
}

// own reports whether an address is one of the server that the token is for.
func (c *Client) own(href string) bool { return strings.HasPrefix(href, c.base+"/") }

// ask posts JSON to the server.
func (c *Client) ask(ctx context.Context, path string, in any) (*parcel.Answer, error) {
	return c.post(ctx, c.base+path, "application/json", in, true)
}

func (c *Client) post(ctx context.Context, address, form string, in any, token bool) (*parcel.Answer, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		return nil, c.malformed("an address that it gives is none")
	}
	r.Header.Set("Content-Type", form)
	r.Header.Set("Accept", form)
	if token {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.do(ctx, r, body)
}

func (c *Client) do(ctx context.Context, r *http.Request, body []byte) (*parcel.Answer, error) {
	r.Header.Set("User-Agent", "starling")
	a, err := c.http.Do(ctx, r, bytes.NewReader(body), int64(len(body)), nil)
	if err == nil && a.Busy() {
		return nil, parcel.Overloaded(r.URL.Host, a)
	}
	return a, err
}

func (c *Client) malformed(why string) error {
	return &parcel.Error{Code: parcel.Refused, What: "the answer of " + c.base + " is not one of a hub",
		Err: errors.New(why), Fix: "check HF_ENDPOINT"}
}

// refusal says why the server refuses.
func (c *Client) refusal(a *parcel.Answer) error {
	if a.OK() {
		return c.malformed("it cannot be read")
	}
	u, _ := url.Parse(c.base) // FromEnvironment has read it
	e := parcel.Refusal(u.Host, a)
	switch a.Status {
	case http.StatusUnauthorized:
		e.Code, e.What, e.Fix = parcel.Credentials, u.Host+" does not accept the token",
			"set HF_TOKEN to a token that may write to "+c.repo
	case http.StatusForbidden:
		e.Code, e.What, e.Fix = parcel.Denied, "the token may not write to "+c.repo,
			"use a token with the right to write there, or another repository"
	case http.StatusNotFound:
		e.Code, e.What, e.Fix = parcel.NotFound, u.Host+" has no repository "+c.repo, "make it, or correct its name"
	}
	return e
}
