package web

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/api/apipb"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/rpc"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/sourcetest"
)

// methods are all of the API.
func methods(s *Server) (all []*rpc.Method) {
	services := apipb.File_starling_v1_service_proto.Services()
	for i := range services.Len() {
		all = append(all, rpc.MethodsOf(services.Get(i), s.routes)...)
	}
	return all
}

// dial is an ordinary client of a server.
func dial(t *testing.T, s *Server, options ...grpc.DialOption) (c *grpc.ClientConn, stop func()) {
	t.Helper()
	address, stop := listener(t, s)
	c, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, stop
}

// refused checks the code of a status, and the stable code in its details.
func refused(t *testing.T, what string, err error, code codes.Code, reason string) []any {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
	var said []string
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			said = append(said, d.Domain+" "+d.Reason)
		case *errdetails.RequestInfo:
			if d.RequestId == "" {
				t.Errorf("%s: the request has no identifier", what)
			}
		}
	}
	if !slices.Equal(said, []string{"starling " + reason}) {
		t.Errorf("%s: %q, want %s", what, said, reason)
	}
	return s.Details()
}

// TestCallsAnswerAsREST asks every method, and its route, for the same.
func TestCallsAnswerAsREST(t *testing.T) {
	s := server(t, Config{Network: sourcetest.Network{}, Launcher: &sourcetest.Launcher{}, Models: sourcetest.Model{}})
	c, _ := dial(t, s)
	values := map[string]string{"id": "first", "address": "starling1abc", "hash": strings.Repeat("ab", 32)}
	for _, m := range methods(s) {
		if m.Route.Handle == nil {
			continue
		}
		in, path, body := m.In.New(), m.Route.Path, io.Reader(nil)
		for name := range m.InPath {
			in.Set(in.Descriptor().Fields().ByTextName(name), protoreflect.ValueOfString(values[name]))
			path = strings.ReplaceAll(path, "{"+name+"}", values[name])
		}
		if m.Body {
			body = strings.NewReader("{}")
		}
		q := httptest.NewRequest(m.Route.Method, "http://localhost"+path, body)
		q.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, q)
		want, got := m.Out.New().Interface(), m.Out.New().Interface()
		if err := protojson.Unmarshal(w.Body.Bytes(), want); err != nil || w.Code >= 300 {
			t.Errorf("%s: %d %v", path, w.Code, err)
		}
		if err := c.Invoke(t.Context(), m.Name, in.Interface(), got); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if h, ok := got.(*apipb.Health); ok {
			h.UptimeSeconds = want.(*apipb.Health).UptimeSeconds
		}
		if !proto.Equal(got, want) {
			t.Errorf("%s: %v, want %v", m.Name, got, want)
		}
	}
	// A field of a request is the parameter of its name.
	page, err := apipb.NewJobServiceClient(c).ListReceipts(t.Context(),
		&apipb.ListReceiptsRequest{Id: "first", Who: "bo", Zero: true, Limit: 1})
	if err != nil || page.Total != 1 || page.Receipts[0].Reason != "wrong_work" || page.Receipts[0].GetDispute() != 0 ||
		page.Receipts[0].Dispute == nil {
		t.Errorf("%v (%v)", page, err)
	}
	series, err := apipb.NewJobServiceClient(c).GetMetrics(t.Context(),
		&apipb.GetMetricsRequest{Id: "first", Series: "loss", Points: 10, From: proto.Float64(100)})
	if err != nil || len(series.Series) != 1 || len(series.Series[0].Step) != 10 || series.Series[0].Step[0] != 100 {
		t.Errorf("%v (%v)", series, err)
	}
}

// fill gives every field of a value something other than zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1000, 0).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	default:
		v.SetUint(1)
	}
}

// lacking are the fields of a message, and of those in it, that have no value.
func lacking(m protoreflect.Message) (names []string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		v := m.Get(f)
		switch {
		case !m.Has(f):
			names = append(names, string(f.FullName()))
		case f.IsMap() || f.Message() == nil || strings.HasPrefix(string(f.Message().FullName()), "google."):
		case f.IsList():
			names = append(names, lacking(v.List().Get(0).Message())...)
		default:
			names = append(names, lacking(v.Message())...)
		}
	}
	return names
}

// The messages have the keys of the types of client/api, no fewer and no more, and every operation is a method, but
// those in OpenAI's form.
func TestMessagesAreTheTypes(t *testing.T) {
	check := func(v reflect.Value, into protoreflect.Message, spare ...string) {
		t.Helper()
		fill(v)
		text, err := json.Marshal(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		if err := protojson.Unmarshal(text, into.Interface()); err != nil {
			t.Errorf("%s: %v", v.Type(), err)
			return
		}
		if names := lacking(into); !slices.Equal(names, spare) {
			t.Errorf("%s has no %v", v.Type(), names)
		}
	}
	check(reflect.New(reflect.TypeFor[api.Update]()).Elem(), new(apipb.Update).ProtoReflect())
	answered, s := map[string]bool{}, server(t, Config{})
	for _, m := range methods(s) {
		answered[m.Route.Method+m.Route.Path] = true
		if m.Route.Handle != nil {
			check(reflect.New(reflect.TypeOf(m.Route.Answer)).Elem(), m.Out.New())
		}
		if m.Route.Body != nil {
			var spare []string
			if m.In.Descriptor().Fields().ByName("idempotency_key") != nil {
				spare = []string{"starling.v1.SubmitJobRequest.idempotency_key"}
			}
			check(reflect.New(reflect.TypeOf(m.Route.Body)).Elem(), m.In.New(), spare...)
			continue
		}
		var have, want []string
		for i := range m.In.Descriptor().Fields().Len() {
			have = append(have, m.In.Descriptor().Fields().Get(i).TextName())
		}
		for name := range m.InPath {
			want = append(want, name)
		}
		for _, p := range m.Route.Params {
			want = append(want, p.Name)
		}
		if m.Route.Path == "/v1/jobs/{id}/events" {
			want = append(want, "last_event_id")
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("%s has %v, its route %v", m.Name, have, want)
		}
	}
	for _, r := range s.routes {
		if (r.Handle != nil && r.Answer != nil || r.Events != nil) && !route.OpenAI(r.Path) && !answered[r.Method+r.Path] {
			t.Errorf("no method is %s %s", r.Method, r.Path)
		}
	}
}

// desk is a Launcher that says what was asked of it.
type desk struct {
	sourcetest.Launcher
	key   string
	asked api.Submission
}

func (d *desk) Submit(_ context.Context, key string, s api.Submission) (string, error) {
	d.key, d.asked = key, s
	if s.Config == "wrong" {
		return "", &failure.Error{Status: http.StatusUnprocessableEntity, Code: "JOB_INVALID",
			Detail: "the job file has an error",
			Problems: []api.ProblemPlace{{Code: "JOB_UNKNOWN_KEY", Place: "job.yaml:3:1", What: `unknown key "x"`,
				Fix: "remove it"}}}
	}
	if s.Config == "full" {
		return "", &failure.Error{Status: http.StatusTooManyRequests, Code: "QUEUE_FULL", Detail: "100 jobs wait",
			Retry: 30 * time.Second}
	}
	return "first", nil
}

func TestCallsSubmit(t *testing.T) {
	d := &desk{}
	c, _ := dial(t, server(t, Config{Launcher: d}))
	jobs := apipb.NewJobServiceClient(c)
	j, err := jobs.SubmitJob(t.Context(),
		&apipb.SubmitJobRequest{Config: "a: 1", Set: []string{"b=2", "c=3"}, Name: "n", Plan: "p",
			IdempotencyKey: "monday-1"})
	if err != nil || j.Id != "first" || j.GetEvalLoss() != 2.5 {
		t.Errorf("%v (%v)", j, err)
	}
	if want := (api.Submission{Spec: api.Spec{Config: "a: 1", Overrides: []string{"b=2", "c=3"}}, Name: "n",
		Plan: "p"}); d.key != "monday-1" || !reflect.DeepEqual(d.asked, want) {
		t.Errorf("%q, %+v", d.key, d.asked)
	}
	_, err = jobs.SubmitJob(t.Context(), &apipb.SubmitJobRequest{Config: "wrong"})
	details := refused(t, "a job with an error", err, codes.InvalidArgument, "JOB_INVALID")
	if bad, ok := details[len(details)-1].(*errdetails.BadRequest); !ok ||
		bad.FieldViolations[0].Field != "job.yaml:3:1" || bad.FieldViolations[0].Reason != "JOB_UNKNOWN_KEY" {
		t.Errorf("%v", details)
	}
	_, err = jobs.SubmitJob(t.Context(), &apipb.SubmitJobRequest{Config: "full"})
	details = refused(t, "a full queue", err, codes.ResourceExhausted, "QUEUE_FULL")
	if again, ok := details[len(details)-1].(*errdetails.RetryInfo); !ok || again.RetryDelay.Seconds != 30 {
		t.Errorf("%v", details)
	}
}

// text is a codec that sends strings as they are.
type text struct{}

func (text) Name() string                    { return "proto" }
func (text) Marshal(v any) ([]byte, error)   { return []byte(v.(string)), nil }
func (text) Unmarshal(b []byte, v any) error { return proto.Unmarshal(b, v.(proto.Message)) }

func TestCallsRefuse(t *testing.T) {
	tokens, err := access.ParseTokens(strings.NewReader("0123456789abcdef read\nfedcba9876543210 read,submit\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := server(t, Config{Tokens: tokens, Launcher: &sourcetest.Launcher{}})
	c, _ := dial(t, s)
	jobs := apipb.NewJobServiceClient(c)
	with := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	reader, owner := with("0123456789abcdef"), with("fedcba9876543210")
	get := func(ctx context.Context, id string) error {
		_, err := jobs.GetJob(ctx, &apipb.GetJobRequest{Id: id})
		return err
	}
	if err := get(reader, "first"); err != nil {
		t.Error(err)
	}
	refused(t, "no token", get(t.Context(), "first"), codes.Unauthenticated, "TOKEN_NEEDED")
	refused(t, "another token", get(with("00000000000000000000"), "first"), codes.Unauthenticated, "TOKEN_UNKNOWN")
	refused(t, "an unknown run", get(reader, "none"), codes.NotFound, "NOT_FOUND")
	refused(t, "no identifier", get(reader, ""), codes.InvalidArgument, "PARAMETER_INVALID")
	_, err = jobs.SubmitJob(reader, &apipb.SubmitJobRequest{})
	refused(t, "a token that may only read", err, codes.PermissionDenied, "SCOPE_MISSING")
	_, err = jobs.SubmitJob(owner, &apipb.SubmitJobRequest{IdempotencyKey: strings.Repeat("k", request.MaxKey+1)})
	refused(t, "a long key", err, codes.InvalidArgument, "KEY_TOO_LONG")
	_, err = jobs.SubmitJob(owner, &apipb.SubmitJobRequest{Config: strings.Repeat("#", route.MaxBody)})
	if status.Code(err) != codes.ResourceExhausted { // said by gRPC itself, which reads no more of it
		t.Errorf("a large message: %v", err)
	}
	err = c.Invoke(reader, "/starling.v1.JobService/GetJob", "\xff", new(apipb.Job), grpc.ForceCodec(text{}))
	refused(t, "bytes that are no message", err, codes.InvalidArgument, "BODY_INVALID")
	_, err = jobs.PlanJob(owner, &apipb.PlanJobRequest{Config: "panic"})
	refused(t, "a panic", err, codes.Internal, "INTERNAL")
	_, err = apipb.NewNetworkServiceClient(c).GetNetwork(reader, &apipb.GetNetworkRequest{})
	refused(t, "no network", err, codes.NotFound, "NO_NETWORK")
	_, err = jobs.ListJobs(reader, &apipb.ListJobsRequest{Limit: 5000})
	refused(t, "a large page", err, codes.InvalidArgument, "PARAMETER_INVALID")
	watch, err := jobs.WatchJob(t.Context(), &apipb.WatchJobRequest{Id: "first"})
	if err == nil {
		_, err = watch.Recv()
	}
	refused(t, "a stream without a token", err, codes.Unauthenticated, "TOKEN_NEEDED")
	if err := c.Invoke(reader, "/starling.v1.JobService/Nothing", &apipb.GetJobRequest{},
		&apipb.Job{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that is none: %v", err)
	}
	stranger, _ := dial(t, s, grpc.WithAuthority("evil.example"))
	_, err = apipb.NewServerServiceClient(stranger).GetVersion(t.Context(), &apipb.GetVersionRequest{})
	refused(t, "another name", err, codes.PermissionDenied, "HOST_UNKNOWN")
}

// busy is a store whose searches end only when no client waits for them.
type busy struct {
	*sourcetest.Store
	left chan error
}

func (b busy) History(ctx context.Context, _ string) (*source.History, error) {
	<-ctx.Done()
	b.left <- ctx.Err()
	return nil, ctx.Err()
}

func TestCallsHaveDeadlines(t *testing.T) {
	b := busy{sourcetest.New(), make(chan error, 2)}
	c, _ := dial(t, server(t, Config{Runs: b}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := apipb.NewJobServiceClient(c).GetJob(ctx,
		&apipb.GetJobRequest{Id: "first"}); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
	if err := <-b.left; err == nil {
		t.Error("the call went on without its caller")
	}
}

// A watch that is cut continues where it was, at another server too; one whose records were taken back gets an event to
// read all again.
func TestWatchResumes(t *testing.T) {
	lib := sourcetest.New()
	grow(lib, 3)
	watch := func(c *grpc.ClientConn, last string) (next func() *apipb.JobEvent, end func() error) {
		w, err := apipb.NewJobServiceClient(c).WatchJob(t.Context(), &apipb.WatchJobRequest{Id: "live", LastEventId: last})
		if err != nil {
			t.Fatal(err)
		}
		next = func() *apipb.JobEvent {
			t.Helper()
			e, err := w.Recv()
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		return next, func() error { _, err := w.Recv(); return err }
	}
	c, stop := dial(t, server(t, Config{Runs: lib}))
	next, end := watch(c, "")
	if first := next(); first.GetUpdate() == nil || len(first.GetUpdate().Metrics) != 0 {
		t.Fatalf("%v", first)
	}
	grow(lib, 4)
	second := next()
	if u := second.GetUpdate(); len(u.GetMetrics()) != 11 || len(u.Checkpoints) != 1 || u.Checkpoints[0].Round != 4 {
		t.Fatalf("%v", second)
	}
	stop()
	if err := end(); status.Code(err) != codes.Unavailable {
		t.Errorf("a watch ended with %v", err)
	}
	grow(lib, 6)
	c, _ = dial(t, server(t, Config{Runs: lib}))
	next, _ = watch(c, second.Id)
	missed := next()
	if u := missed.GetUpdate(); len(u.GetCheckpoints()) != 2 || u.Checkpoints[0].Round != 5 {
		t.Fatalf("%v", missed)
	}
	grow(lib, 2)
	if e := next(); e.GetReset_() == nil || len(e.GetReset_().Metrics) != 0 {
		t.Errorf("%v", e)
	}
	next, _ = watch(c, "nonsense")
	if e := next(); e.GetReset_() == nil {
		t.Errorf("%v", e)
	}
}

func TestWatchEverything(t *testing.T) {
	s := server(t, Config{Network: sourcetest.Network{}, Streams: 1})
	c, _ := dial(t, s)
	jobs := apipb.NewJobServiceClient(c)
	ctx, cancel := context.WithCancel(t.Context())
	w, err := jobs.Watch(ctx, &apipb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 3 {
		e, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.GetJob().GetId()+e.GetNetwork().GetChainId())
	}
	if slices.Sort(got); !slices.Equal(got, []string{"first", "second", "village-1"}) {
		t.Errorf("%v", got)
	}
	second, err := jobs.Watch(t.Context(), &apipb.WatchRequest{})
	if err == nil {
		_, err = second.Recv()
	}
	refused(t, "one stream too many", err, codes.Unavailable, "TOO_MANY_STREAMS")
	cancel()
	for s.streams.Counts().Open > 0 { // the server finds out that the caller went
		if _, err := w.Recv(); status.Code(err) != codes.Canceled {
			t.Fatal(err)
		}
	}
}

func TestServingStatus(t *testing.T) {
	lib := sourcetest.New()
	c, _ := dial(t, server(t, Config{Runs: lib, Network: sourcetest.Network{}}))
	health := grpc_health_v1.NewHealthClient(c)
	for service, want := range map[string]grpc_health_v1.HealthCheckResponse_ServingStatus{
		"": grpc_health_v1.HealthCheckResponse_SERVING, "starling.v1.JobService": grpc_health_v1.HealthCheckResponse_SERVING,
		"starling.v1.NetworkService": grpc_health_v1.HealthCheckResponse_NOT_SERVING, // its latest block is old
	} {
		if r, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service}); err != nil ||
			r.Status != want {
			t.Errorf("%q: %v (%v)", service, r, err)
		}
	}
	_, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "none"})
	refused(t, "an unknown service", err, codes.NotFound, "SERVICE_UNKNOWN")
	w, err := health.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []grpc_health_v1.HealthCheckResponse_ServingStatus{grpc_health_v1.HealthCheckResponse_SERVING,
		grpc_health_v1.HealthCheckResponse_NOT_SERVING} {
		if r, err := w.Recv(); err != nil || r.Status != want {
			t.Fatalf("%v (%v), want %s", r, err, want)
		}
		lib.Fail(io.ErrUnexpectedEOF)
	}
}

// A client that has no .proto file finds the services, and the shape of a message, by asking.
func TestReflection(t *testing.T) {
	c, _ := dial(t, server(t, Config{}))
	w, err := grpc_reflection_v1.NewServerReflectionClient(c).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(q *grpc_reflection_v1.ServerReflectionRequest) *grpc_reflection_v1.ServerReflectionResponse {
		t.Helper()
		if err := w.Send(q); err != nil {
			t.Fatal(err)
		}
		a, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	var names []string
	list := &grpc_reflection_v1.ServerReflectionRequest{
		MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}}
	for _, s := range ask(list).GetListServicesResponse().GetService() {
		names = append(names, s.Name)
	}
	want := []string{"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
		"grpc.reflection.v1alpha.ServerReflection",
		"starling.v1.JobService", "starling.v1.ModelService", "starling.v1.NetworkService", "starling.v1.ServerService"}
	if !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	found := ask(
		&grpc_reflection_v1.ServerReflectionRequest{
			MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_FileContainingSymbol{
				FileContainingSymbol: "starling.v1.JobService",
			},
		},
	)
	described := map[string]bool{}
	for _, b := range found.GetFileDescriptorResponse().GetFileDescriptorProto() {
		f := new(descriptorpb.FileDescriptorProto)
		if err := proto.Unmarshal(b, f); err != nil {
			t.Fatal(err)
		}
		if _, err := (protodesc.FileOptions{AllowUnresolvable: true}).New(f, nil); err != nil {
			t.Error(err)
		}
		described[f.GetName()] = true
	}
	if !described["starling/v1/service.proto"] {
		t.Errorf("%v", described)
	}
}

// HTTP by version 2 without gRPC is answered as by version 1.
func TestPagesByHTTP2(t *testing.T) {
	address, _ := listener(t, server(t, Config{}))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	a, err := client.Get("http://" + address + "/v1/jobs/first")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if a.ProtoMajor != 2 || a.StatusCode != 200 || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", a)
	}
}
