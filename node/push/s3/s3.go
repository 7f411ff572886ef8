// Package s3 puts files into a store that speaks the protocol of Amazon S3: whole, or in parts that a later process
// continues. Requests are signed with signature version 4. It is no client for anything else of such a store: it
// makes no buckets, and deletes nothing.
package s3

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/starling-network/starling/node/push/parcel"
)

const (
	partBytes = 16 << 20 // of a part; S3 takes 5 MiB and more
	maxParts  = 9_000    // of a file; S3 takes 10,000
	metaSum   = "x-amz-meta-sha256"
)

// Upload is a file of which parts may be in the store.
type Upload struct {
	ID     string `json:"id"`
	SHA256 string `json:"sha256"` // of the file
	Part   int64  `json:"part"`   // bytes of a part
}

// Client puts files into one bucket.
type Client struct {
	Settings
	Target
	Open map[string]Upload         // by key; Keep changes it
	Keep func(change func()) error // makes a change of Open, and makes it durable

	http      *parcel.Client
	partBytes int64
	now       func() time.Time
}

// New makes a client. open are the uploads that earlier processes have left, and keep makes a change of them durable.
func New(t Target, s Settings, open map[string]Upload,
	keep func(change func()) error) *Client {
	return &Client{Settings: s, Target: t, Open: open, Keep: keep, http: parcel.NewClient(), partBytes: partBytes,
		now: time.Now}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.Close() }

// Put makes the store hold a file. sent is called with the number of bytes of it that the store has. A file that is
// there already, by its size and by the digest that this client keeps in its metadata, is not sent again.
func (c *Client) Put(ctx context.Context, f parcel.File, sent func(n int64)) error {
	key := c.Key(f.Name)
	if c.has(ctx, key, f) {
		sent(f.Bytes)
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	part := max(c.partBytes, (f.Bytes/maxParts+1<<20)>>20<<20)
	if f.Bytes <= part {
		a, err := c.send(ctx, request{method: http.MethodPut, key: key, body: io.NewSectionReader(r, 0, f.Bytes),
			bytes: f.Bytes, sum: f.SHA256, header: map[string]string{metaSum: f.SHA256}, moved: counter(0, sent)})
		if err == nil && !a.OK() {
			err = c.refusal(a)
		}
		return err
	}
	return c.putParts(ctx, key, f, r, part, sent)
}

// counter turns numbers of bytes into their sum.
func counter(base int64, sent func(int64)) func(int64) {
	return func(n int64) {
		base += n
		sent(base)
	}
}

// has reports whether the store holds a file. An answer that does not say so counts as no: sending the file shows the
// reason.
func (c *Client) has(ctx context.Context, key string, f parcel.File) bool {
	a, err := c.send(ctx, request{method: http.MethodHead, key: key})
	return err == nil && a.Status == http.StatusOK && a.Header.Get(metaSum) == f.SHA256 &&
		a.Header.Get("Content-Length") == fmt.Sprint(f.Bytes)
}

type partDone struct {
	Number int    `xml:"PartNumber"`
	ETag   string `xml:"ETag"`
	Size   int64  `xml:"Size"`
}

// putParts sends a file in parts. It begins with those that the store lacks.
func (c *Client) putParts(ctx context.Context, key string, f parcel.File, r io.ReaderAt, part int64,
	sent func(int64)) error {
	u, had, err := c.begin(ctx, key, f, part)
	if err != nil {
		return err
	}
	count := int((f.Bytes + u.Part - 1) / u.Part)
	done := make([]partDone, count)
	base := int64(0)
	size := func(i int) int64 { return min(u.Part, f.Bytes-int64(i)*u.Part) }
	for _, p := range had {
		if i := p.Number - 1; i >= 0 && i < count && p.Size == size(i) && done[i].ETag == "" {
			done[i] = p
			base += p.Size
		}
	}
	sent(base)
	for i := range done {
		if done[i].ETag != "" {
			continue
		}
		at, n := int64(i)*u.Part, size(i)
		sum, err := parcel.Digest(r, at, n)
		if err != nil {
			return err
		}
		a, err := c.send(ctx, request{method: http.MethodPut, key: key, body: io.NewSectionReader(r, at, n), bytes: n,
			sum: sum, query: map[string]string{"partNumber": fmt.Sprint(i + 1), "uploadId": u.ID},
			moved: counter(base, sent)})
		switch {
		case err != nil:
			return err
		case a.Status == http.StatusNotFound && code(a).Code == "NoSuchUpload":
			return c.forget(key, &parcel.Error{Code: parcel.Conflict, What: "the store has dropped the upload of " + key})
		case !a.OK():
			return c.refusal(a)
		}
		done[i] = partDone{Number: i + 1, ETag: a.Header.Get("Etag")}
		base += n
	}
	return c.complete(ctx, key, u, done)
}

// begin continues an upload, or begins one. It returns the parts that the store has.
func (c *Client) begin(ctx context.Context, key string, f parcel.File, part int64) (u Upload, had []partDone, _ error) {
	u, ok := c.Open[key]
	if ok && u.SHA256 == f.SHA256 && u.Part == part {
		had, err := c.parts(ctx, key, u.ID)
		if err != nil || had != nil {
			return u, had, err
		}
	}
	a, err := c.send(ctx, request{method: http.MethodPost, key: key, query: map[string]string{"uploads": ""},
		header: map[string]string{metaSum: f.SHA256}})
	if err != nil {
		return u, nil, err
	}
	var begun struct{ UploadId string }
	if !a.OK() || xml.Unmarshal(a.Body, &begun) != nil || begun.UploadId == "" {
		return u, nil, c.refusal(a)
	}
	u = Upload{ID: begun.UploadId, SHA256: f.SHA256, Part: part}
	return u, nil, c.Keep(func() { c.Open[key] = u })
}

// parts lists what the store has of an upload; nil: it does not know the upload.
func (c *Client) parts(ctx context.Context, key, id string) ([]partDone, error) {
	had, marker := []partDone{}, ""
	for range maxParts {
		ask := map[string]string{"uploadId": id}
		if marker != "" {
			ask["part-number-marker"] = marker
		}
		a, err := c.send(ctx, request{method: http.MethodGet, key: key, query: ask})
		if err != nil {
			return nil, err
		}
		if a.Status == http.StatusNotFound {
			return nil, nil
		}
		var list struct {
			Parts     []partDone `xml:"Part"`
			Truncated bool       `xml:"IsTruncated"`
			Next      string     `xml:"NextPartNumberMarker"`
		}
		if !a.OK() || xml.Unmarshal(a.Body, &list) != nil {
			return nil, c.refusal(a)
		}
		had = append(had, list.Parts...)
		if !list.Truncated || list.Next == marker {
			break
		}
		marker = list.Next
	}
	return had, nil
}

// complete makes an object of the parts.
func (c *Client) complete(ctx context.Context, key string, u Upload, parts []partDone) error {
	var body strings.Builder
	body.WriteString("<CompleteMultipartUpload>")
	for _, p := range parts {
		var tag strings.Builder
		_ = xml.EscapeText(&tag, []byte(p.ETag)) // a strings.Builder takes everything
		fmt.Fprintf(&body, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", p.Number, tag.String())
	}
	body.WriteString("</CompleteMultipartUpload>")
	text := body.String()
	sum, err := parcel.Digest(strings.NewReader(text), 0, int64(len(text)))
	if err != nil {
		return err
	}
	a, err := c.send(ctx, request{method: http.MethodPost, key: key, query: map[string]string{"uploadId": u.ID},
		body: strings.NewReader(text), bytes: int64(len(text)), sum: sum})
	if err != nil {
		return err
	}
	switch no := code(a); { // a status of 200 may come with an error
	case no.Code == "NoSuchUpload" || no.Code == "InvalidPart" || no.Code == "InvalidPartOrder":
		return c.forget(key, &parcel.Error{Code: parcel.Conflict, What: "the store has dropped parts of " + key})
	case no.Code == "InternalError":
		return parcel.Overloaded(c.host(), a)
	case no.Code != "" || !a.OK():
		return c.refusal(a)
	}
	return c.forget(key, nil)
}

// forget drops an upload, and returns the error given, or else that of the disk.
func (c *Client) forget(key string, why *parcel.Error) error {
	if err := c.Keep(func() { delete(c.Open, key) }); why == nil || err != nil {
		return err
	}
	return why
}

// request is a request to the store.
type request struct {
	method, key string
	query       map[string]string
	header      map[string]string
	body        io.Reader
	bytes       int64
	sum         string // SHA-256 of body; "": of nothing
	moved       func(int64)
}

// host is that of the bucket. Amazon's has the bucket in its name, unless that has a full stop, for which there is no
// certificate; other stores have it in the path.
func (c *Client) host() string {
	switch {
	case c.Endpoint != nil:
		return c.Endpoint.Host
	case strings.Contains(c.Bucket, "."):
		return "s3." + c.Region + ".amazonaws.com"
	}
	return c.Bucket + ".s3." + c.Region + ".amazonaws.com"
}

// Address is where a key is, for people.
func (c *Client) Address(key string) string {
	u := url.URL{Scheme: "https", Host: c.host()}
	path := "/" + key
	if c.Endpoint != nil {
		u.Scheme, path = c.Endpoint.Scheme, c.Endpoint.Path+"/"+c.Bucket+path
	} else if strings.Contains(c.Bucket, ".") {
		path = "/" + c.Bucket + path
	}
	u.Path, u.RawPath = path, encode(path, true)
	return u.String()
}

// send signs and sends a request.
func (c *Client) send(ctx context.Context, q request) (*parcel.Answer, error) {
	address := c.Address(q.key)
	if len(q.query) > 0 {
		address += "?" + query(q.query)
	}
	r, err := http.NewRequest(q.method, address, nil)
	if err != nil {
		return nil, err
	}
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	if q.sum == "" {
		q.sum = noBody
	}
	c.Keys.sign(r, c.Region, q.sum, c.now())
	r.Header.Set("User-Agent", "starling")
	a, err := c.http.Do(ctx, r, q.body, q.bytes, q.moved)
	if err == nil && (a.Busy() || code(a).Code == "SlowDown") {
		return nil, parcel.Overloaded(c.host(), a)
	}
	return a, err
}

// said is the error in an answer.
type said struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
	Region  string
}

func code(a *parcel.Answer) (s said) {
	if xml.Unmarshal(a.Body, &s) != nil {
		return said{}
	}
	return s
}

// refusal says why the store refuses.
func (c *Client) refusal(a *parcel.Answer) *parcel.Error {
	no := code(a)
	e := parcel.Refusal(c.host(), a)
	if no.Code != "" {
		e.Err = fmt.Errorf("%s: %s", no.Code, no.Message)
	}
	region := a.Header.Get("X-Amz-Bucket-Region")
	if region == "" {
		region = no.Region
	}
	switch {
	case no.Code == "NoSuchBucket" || a.Status == http.StatusNotFound:
		e.Code, e.What, e.Fix = parcel.NotFound, "there is no bucket "+c.Bucket,
			"make it first, or correct the target and the endpoint"
	case a.Status/100 == 3 || no.Code == "AuthorizationHeaderMalformed":
		e.Code, e.What, e.Fix = parcel.Region, "the bucket "+c.Bucket+" is not in the region "+c.Region,
			"set AWS_REGION to its region"
		if region != "" {
			e.Fix = "set AWS_REGION=" + region
		}
	case no.Code == "InvalidAccessKeyId" || no.Code == "SignatureDoesNotMatch" || no.Code == "ExpiredToken" ||
		no.Code == "InvalidToken" || a.Status == http.StatusUnauthorized:
		e.Code, e.What, e.Fix = parcel.Credentials, "the store does not accept the credentials",
			"check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
	case a.Status == http.StatusForbidden:
		e.Code, e.What, e.Fix = parcel.Denied, "the account may not write to the bucket "+c.Bucket,
			"let it s3:PutObject there, or use the keys of another account"
	}
	return e
}
