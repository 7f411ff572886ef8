package pushtest

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Keys and region of the one account of a Store.
const (
	Access  = "AKTEST0123456789"
	Secret  = "a secret/with+signs="
	Session = "a session token"
	Region  = "eu-test-7"
)

// Object is what a store holds under a key.
type Object struct {
	Bytes []byte
	Meta  http.Header // x-amz-meta-*
	Tag   string
}

type pending struct {
	key   string
	meta  http.Header
	parts map[int]Object
}

// Store is a server with the protocol of Amazon S3, with one bucket.
type Store struct {
	URL, Bucket string
	Page        int  // parts of one list
	ReadOnly    bool // the account may not write
	// called before a request is served: a status other than 0 is the answer, and -1 breaks the connection
	Fault func(r *http.Request, n int) int

	mu       sync.Mutex
	objects  map[string]Object
	pending  map[string]pending
	requests []string // method, path and query
	order    []string // keys as they were made
}

// NewStore starts a store with a bucket of that name, and sets the environment of its clients.
func NewStore(t testing.TB, bucket string) *Store {
	s := StartStore(t, bucket)
	for name, value := range s.Environment() {
		t.Setenv(name, value)
	}
	return s
}

// StartStore starts a store with a bucket of that name, whose clients have no environment yet.
func StartStore(t testing.TB, bucket string) *Store {
	s := &Store{Bucket: bucket, Page: 2, objects: map[string]Object{}, pending: map[string]pending{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Environment are the variables by which clients find the store.
func (s *Store) Environment() map[string]string {
	return map[string]string{"AWS_ACCESS_KEY_ID": Access, "AWS_SECRET_ACCESS_KEY": Secret,
		"AWS_SESSION_TOKEN": Session, "AWS_REGION": Region, "AWS_ENDPOINT_URL_S3": s.URL}
}

// Objects are those that the store holds.
func (s *Store) Objects() map[string]Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.objects)
}

// Requests are those that were served or refused.
func (s *Store) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Order are the keys in the order in which objects were made.
func (s *Store) Order() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

// Pending is the number of uploads that are open.
func (s *Store) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Forget drops every open upload, as a rule of a bucket may.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.pending)
}

// ServeHTTP implements http.Handler.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.RequestURI)
	n, fault := len(s.requests), s.Fault
	s.mu.Unlock()
	if fault != nil {
		switch status := fault(r, n); {
		case status < 0:
			_, _ = io.CopyN(io.Discard, r.Body, 1<<10) // in the middle of the body
			panic(http.ErrAbortHandler)
		case status > 0:
			refuse(w, status, "SlowDown", "reduce your request rate")
			return
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if code, text := verify(r, body); code != "" {
		refuse(w, http.StatusForbidden, code, text)
		return
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case bucket != s.Bucket:
		refuse(w, http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	case r.Method == http.MethodHead:
		s.head(w, key)
	case s.ReadOnly:
		refuse(w, http.StatusForbidden, "AccessDenied", "Access Denied")
	default:
		s.change(w, r, key, body)
	}
}

func (s *Store) head(w http.ResponseWriter, key string) {
	o, ok := s.objects[key]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	maps.Copy(w.Header(), o.Meta)
	w.Header().Set("Etag", o.Tag)
	w.Header().Set("Content-Length", fmt.Sprint(len(o.Bytes)))
}

func (s *Store) change(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	q := r.URL.Query()
	id := q.Get("uploadId")
	p, open := s.pending[id]
	number, err := strconv.Atoi(q.Get("partNumber"))
	switch {
	case id != "" && (!open || p.key != key):
		refuse(w, http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist")
	case r.Method == http.MethodPost && q.Has("uploads"):
		id = fmt.Sprintf("upload+%d/", len(s.requests)) // an identifier has to be escaped
		s.pending[id] = pending{key, meta(r), map[int]Object{}}
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><Key>%s</Key><UploadId>%s</UploadId></InitiateMultipartUploadResult>",
			key, id)
	case r.Method == http.MethodPut && open && err == nil && number >= 1 && number <= 10_000:
		p.parts[number] = Object{Bytes: body, Tag: tag(body)}
		w.Header().Set("Etag", tag(body))
	case r.Method == http.MethodGet && open:
		s.list(w, p, q)
	case r.Method == http.MethodPost && open:
		s.complete(w, id, p, body)
	case r.Method == http.MethodPut && id == "":
		s.objects[key] = Object{body, meta(r), tag(body)}
		s.order = append(s.order, key)
		w.Header().Set("Etag", tag(body))
	default:
		refuse(w, http.StatusBadRequest, "InvalidRequest", "no such operation")
	}
}

func (s *Store) list(w http.ResponseWriter, p pending, q url.Values) {
	after, _ := strconv.Atoi(q.Get("part-number-marker"))
	var numbers []int
	for _, n := range slices.Sorted(maps.Keys(p.parts)) {
		if n > after {
			numbers = append(numbers, n)
		}
	}
	more := len(numbers) > s.Page
	numbers = numbers[:min(len(numbers), s.Page)]
	fmt.Fprint(w, "<ListPartsResult>")
	for _, n := range numbers {
		fmt.Fprintf(w, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag><Size>%d</Size></Part>", n,
			strings.ReplaceAll(p.parts[n].Tag, `"`, "&quot;"), len(p.parts[n].Bytes))
	}
	if more {
		fmt.Fprintf(w, "<NextPartNumberMarker>%d</NextPartNumberMarker>", numbers[len(numbers)-1])
	}
	fmt.Fprintf(w, "<IsTruncated>%t</IsTruncated></ListPartsResult>", more)
}

func (s *Store) complete(w http.ResponseWriter, id string, p pending, body []byte) {
	var asked struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []struct {
			PartNumber int
			ETag       string
		}
	}
	if xml.Unmarshal(body, &asked) != nil || len(asked.Part) == 0 {
		refuse(w, http.StatusBadRequest, "MalformedXML", "no list of parts")
		return
	}
	var whole []byte
	last := 0
	for _, x := range asked.Part {
		part, ok := p.parts[x.PartNumber]
		if !ok || part.Tag != x.ETag {
			refuse(w, http.StatusBadRequest, "InvalidPart", "a part is not there")
			return
		}
		if x.PartNumber <= last {
			refuse(w, http.StatusBadRequest, "InvalidPartOrder", "the parts are not in order")
			return
		}
		last, whole = x.PartNumber, append(whole, part.Bytes...)
	}
	s.objects[p.key] = Object{whole, p.meta, fmt.Sprintf(`"parts-%d"`, len(asked.Part))}
	s.order = append(s.order, p.key)
	delete(s.pending, id)
	fmt.Fprint(w, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")
}

func meta(r *http.Request) http.Header {
	kept := http.Header{}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Amz-Meta-") {
			kept[name] = values
		}
	}
	return kept
}

func tag(body []byte) string { return fmt.Sprintf(`"%x"`, md5.Sum(body)) }

func refuse(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>%s</Message></Error>", code, text)
}

// verify checks signature version 4 as a server sees the request.
func verify(r *http.Request, body []byte) (code, text string) {
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	fields := map[string]string{}
	for _, f := range strings.Split(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(f), "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	sum := sha256.Sum256(body)
	signed := strings.Split(fields["SignedHeaders"], ";")
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") && !slices.Contains(signed, name) {
			return "AccessDenied", "There were headers present in the request which were not signed: " + name
		}
	}
	switch {
	case scheme != "AWS4-HMAC-SHA256" || len(scope) != 5 || !slices.IsSorted(signed) || !slices.Contains(signed, "host"):
		return "AccessDenied", "the request is not signed"
	case scope[0] != Access || r.Header.Get("X-Amz-Security-Token") != Session:
		return "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."
	case scope[2] != Region || scope[3] != "s3" || scope[4] != "aws4_request" || scope[1] != at.Format("20060102"):
		return "AuthorizationHeaderMalformed", "the scope is wrong"
	case err != nil || time.Since(at).Abs() > 15*time.Minute:
		return "RequestTimeTooSkewed", "the time differs"
	case r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]):
		return "XAmzContentSHA256Mismatch", "the body is another"
	}
	path, raw, _ := strings.Cut(r.RequestURI, "?")
	pairs := strings.Split(raw, "&")
	slices.Sort(pairs)
	canonical := []string{r.Method, path, strings.Join(pairs, "&")}
	for _, name := range signed {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		canonical = append(canonical, name+":"+strings.TrimSpace(value))
	}
	canonical = append(canonical, "", fields["SignedHeaders"], hex.EncodeToString(sum[:]))
	whole := sha256.Sum256([]byte(strings.Join(canonical, "\n")))
	key := []byte("AWS4" + Secret)
	for _, word := range append(slices.Clone(scope[1:]), strings.Join([]string{"AWS4-HMAC-SHA256",
		r.Header.Get("X-Amz-Date"), strings.Join(scope[1:], "/"), hex.EncodeToString(whole[:])}, "\n")) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(word))
		key = h.Sum(nil)
	}
	if hex.EncodeToString(key) != fields["Signature"] {
		return "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."
	}
	return "", ""
}
