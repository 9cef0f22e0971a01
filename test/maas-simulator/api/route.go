// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/form"
	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/problem"
	"github.com/openshift/hypershift/test/maas-simulator/render"
)

// op is one thing that a resource can do; exactly one of its functions is set.
type op struct {
	// read runs inside View, write inside Update, outside on its own.
	read, write, outside func(*call) (any, error)
	// anonymous lets callers without credentials.
	anonymous bool
}

// ops are the operations of a resource, by method, or by method and op:
// "GET", "POST allocate".
type ops map[string]op

// resource answers below one path.
type resource struct {
	// name is the first part of operation names.
	name string
	ops  ops
	// open resources have a side for anonymous callers: what that side does not
	// know is an unknown operation, and not a lack of credentials.
	open bool
	// public resources do not look at credentials, good or bad.
	public bool
}

type route struct {
	// pattern has one element a path segment; "{}" takes any.
	pattern []string
	resource
}

func (s *Server) handle(path string, r resource) route {
	return route{pattern: strings.Split(path, "/"), resource: r}
}

// call is a request on its way through an operation.
type call struct {
	*Server
	request   *http.Request
	resource  resource
	operation string
	method    string
	op        string
	// path holds what the pattern's holes took.
	path  []string
	query form.Values
	// body is what payload read, or bodyErr why it could not.
	body     form.Values
	bodyErr  error
	bodyRead bool
	// form is the body, or the query where there is no body.
	form form.Values
	user *inventory.User
	// caller is the name of the user whose key the request names, before anything is verified; empty for none.
	caller string
	// after is what happens once the answer is made.
	after func() error
	// printed is how many machines the answer prints.
	printed int
	// fixed is an answer that needs nothing else.
	fixed *reply
}

var verbs = map[string]string{"GET": "read", "POST": "create", "PUT": "update", "DELETE": "delete"}

// match finds the resource and the operation that a request is for.
func (s *Server) match(r *http.Request) (*call, error) {
	path := collapse(r.URL.EscapedPath())
	c := &call{Server: s, request: r, method: r.Method}
	if !strings.HasPrefix(path, "/MAAS/") {
		// MAAS's web server knows nothing else; its API is not asked.
		missing := page(http.StatusNotFound, "")
		c.fixed = &missing
		return c, nil
	}
	if fixed := unversioned(path); fixed != nil {
		c.fixed = fixed
		return c, nil
	}
	query, err := form.Parse(r.URL.RawQuery)
	if err != nil {
		return nil, problem.Text(http.StatusBadRequest, "%s", err.Error())
	}
	c.query, c.op = query, query.Get("op")
	rest, ok := strings.CutPrefix(path, render.Root)
	if !ok {
		return nil, unknownEndpoint(path)
	}
	if cut := strings.LastIndex(rest, "/op-"); cut >= 0 && s.print.Version.AtLeast(3, 3) {
		c.op, rest = rest[cut+len("/op-"):], rest[:cut+1]
	}
	segments := strings.Split(rest, "/")
	for _, route := range s.routes {
		if params, ok := route.match(segments); ok {
			c.resource, c.path = route.resource, params
			c.name()
			return c, nil
		}
	}
	return nil, unknownEndpoint(path)
}

// collapse makes one slash of several.
func collapse(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

func unknownEndpoint(path string) error {
	return problem.Text(http.StatusNotFound, "Unknown API endpoint: %s.", path)
}

// unversioned answers the paths outside of the API's version.
func unversioned(path string) *reply {
	switch {
	case path == "/MAAS/api/":
		return &reply{status: http.StatusFound, media: mediaHTML, header: http.Header{"Location": {"/MAAS/docs/api.html"}}}
	case path == "/MAAS/api/version/":
		r := text(http.StatusOK, "2.0")
		return &r
	case strings.HasPrefix(path, "/MAAS/api/1.0/"):
		r := text(http.StatusGone, "The 1.0 API is no longer available. Please use API version 2.0.")
		return &r
	}
	return nil
}

func (r route) match(segments []string) (params []string, ok bool) {
	if len(segments) != len(r.pattern) {
		return nil, false
	}
	for i, want := range r.pattern {
		if want == "{}" && segments[i] != "" {
			value, err := url.PathUnescape(segments[i])
			if err != nil {
				return nil, false
			}
			params = append(params, value)
		} else if want != segments[i] {
			return nil, false
		}
	}
	return params, true
}

// name settles the operation's name, for which the body may have to be read.
func (c *call) name() {
	if c.op == "" && c.method == http.MethodPost {
		// A broken body is refused when the operation reads it.
		if body, err := c.payload(); err == nil {
			c.op = body.Get("op")
		}
	}
	verb := c.op
	if verb == "" {
		verb = verbs[c.method]
	}
	c.operation = c.resource.name + "." + verb
}

// payload reads the body, once, and keeps what came of it.
func (c *call) payload() (form.Values, error) {
	if !c.bodyRead {
		c.body, c.bodyErr = form.Body(c.request)
		c.bodyRead = true
	}
	return c.body, c.bodyErr
}

// signed is the part of the body that signatures are about.
func (c *call) signed() form.Values {
	if !form.URLEncoded(c.request) {
		return nil
	}
	// A broken body is refused when the operation reads it.
	body, _ := c.payload()
	return body
}

// choose finds the operation, or says why there is none for this caller.
func (c *call) choose() (op, error) {
	key := c.method
	if c.op != "" {
		key += " " + c.op
	}
	found, known := c.resource.ops[key]
	if c.user == nil && !(known && found.anonymous) {
		if !c.resource.open {
			refusal := problem.Text(http.StatusUnauthorized, "Forbidden")
			refusal.Header = challenge
			return op{}, refusal
		}
		known = false
	}
	if known {
		return found, nil
	}
	for other := range c.resource.ops {
		if method, _, _ := strings.Cut(other, " "); method == c.method {
			return op{}, c.unrecognised()
		}
	}
	return op{}, problem.HTML(http.StatusMethodNotAllowed, "")
}

func (c *call) unrecognised() error {
	name := c.op
	if name == "" {
		name = "None"
	}
	return problem.Text(http.StatusBadRequest, "Unrecognised signature: method=%s op=%s", c.method, name)
}

// parse reads the parameters.
func (c *call) parse() error {
	switch c.method {
	case http.MethodGet:
		c.form = c.query
		return nil
	case http.MethodPost, http.MethodPut:
		body, err := c.payload()
		c.form = body
		return err
	}
	c.form = c.query
	return nil
}

// admin refuses callers who are no administrators.
func (c *call) admin() error {
	if !c.user.Superuser {
		return problem.AdminOnly()
	}
	return nil
}

// silentAdmin does too, without a word.
func (c *call) silentAdmin() error {
	if !c.user.Superuser {
		return problem.Forbidden()
	}
	return nil
}
