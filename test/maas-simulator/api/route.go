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

// op is an operation of a resource. Exactly one of its functions is set.
type op struct {
	// read runs inside View, write inside Update, and outside runs in neither.
	read, write, outside func(*call) (any, error)
	// anonymous allows requests without credentials.
	anonymous bool
}

// ops maps a method, or a method and an op, to an operation: "GET", "POST allocate".
type ops map[string]op

// resource is the handler of one path.
type resource struct {
	// name is the first part of the names of its operations.
	name string
	ops  ops
	// open means that the resource has operations for anonymous requests. For such a request, any other operation is
	// unknown, instead of unauthorized.
	open bool
	// public means that the resource ignores credentials, even invalid ones.
	public bool
}

type route struct {
	// pattern contains the path segments; "{}" matches any segment.
	pattern []string
	resource
}

func (s *Server) handle(path string, r resource) route {
	return route{pattern: strings.Split(path, "/"), resource: r}
}

// call is a request to an operation.
type call struct {
	*Server
	request   *http.Request
	resource  resource
	operation string
	method    string
	op        string
	// path contains the segments that "{}" matched.
	path  []string
	query form.Values
	// body is the parsed body, or bodyErr the error of parsing it. payload sets both.
	body     form.Values
	bodyErr  error
	bodyRead bool
	// form contains the parameters of the body, or of the query for methods without a body.
	form form.Values
	user *inventory.User
	// caller is the name of the user whose key the request has; empty for none. It is set before the credentials are
	// verified.
	caller string
	// after runs after the response is determined.
	after func() error
	// printed is the number of machines in the response.
	printed int
	// fixed is a constant response that needs no operation.
	fixed *reply
}

var verbs = map[string]string{"GET": "read", "POST": "create", "PUT": "update", "DELETE": "delete"}

// match returns the resource and the operation of a request.
func (s *Server) match(r *http.Request) (*call, error) {
	path := collapse(r.URL.EscapedPath())
	c := &call{Server: s, request: r, method: r.Method}
	if !strings.HasPrefix(path, "/MAAS/") {
		// MAAS's web server has no other paths. The request does not reach the API.
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

// collapse replaces repeated slashes with one.
func collapse(path string) string {
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

func unknownEndpoint(path string) error {
	return problem.Text(http.StatusNotFound, "Unknown API endpoint: %s.", path)
}

// unversioned returns the response for paths outside of the API's version; nil for other paths.
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

// name sets the operation's name. It may have to read the body for that.
func (c *call) name() {
	if c.op == "" && c.method == http.MethodPost {
		// The operation reports an invalid body when it reads it.
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

// payload parses the body once and stores the result.
func (c *call) payload() (form.Values, error) {
	if !c.bodyRead {
		c.body, c.bodyErr = form.Body(c.request)
		c.bodyRead = true
	}
	return c.body, c.bodyErr
}

// signed returns the parameters of the body that the signature covers.
func (c *call) signed() form.Values {
	if !form.URLEncoded(c.request) {
		return nil
	}
	// The operation reports an invalid body when it reads it.
	body, _ := c.payload()
	return body
}

// choose returns the operation, or an error if there is none or if it needs credentials.
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

// parse sets the parameters of the operation.
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

// admin returns an error if the user is not an administrator.
func (c *call) admin() error {
	if !c.user.Superuser {
		return problem.AdminOnly()
	}
	return nil
}

// silentAdmin is like admin, but its error has no message.
func (c *call) silentAdmin() error {
	if !c.user.Superuser {
		return problem.Forbidden()
	}
	return nil
}
