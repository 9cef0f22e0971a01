// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeAWS implements the parts of the EC2 and load balancer APIs that endpoint services need.
type fakeAWS struct {
	mu sync.Mutex
	// balancers are the states of load balancers, by name.
	balancers map[string]string
	services  []*fakeService
	// refuses are the error codes that actions return, by action.
	refuses map[string]string
	// asked are the actions that were called, in order.
	asked []string
	// lost makes CreateVpcEndpointServiceConfiguration create the service and lose the response.
	lost bool
	// unsuccessful is why DeleteVpcEndpointServiceConfigurations does not delete a service; empty for EC2's own checks.
	unsuccessful string
	// late makes DescribeVpcEndpointServiceConfigurations omit new services.
	late bool
}

type fakeService struct {
	id, balancer, token string
	tags                map[string]string
	admitted, connected []string
	acceptance          string
	// state is the state of the connections; empty means available.
	state string
}

func (f *fakeAWS) start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server.URL
}

func balancerARN(name string) string {
	return "arn:aws:elasticloadbalancing:eu-west-1:210987654321:loadbalancer/net/" + name + "/0123456789abcdef"
}

func (f *fakeAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := r.ParseForm(); err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") {
		fail(w, "", "AuthFailure")
		return
	}
	action := r.Form.Get("Action")
	f.asked = append(f.asked, action)
	if code := f.refuses[action]; code != "" {
		fail(w, action, code)
		return
	}
	answer, code := f.act(action, r.Form)
	if code != "" {
		fail(w, action, code)
		return
	}
	_, _ = fmt.Fprintf(w, `<%sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId>%s</%sResponse>`, action, answer, action) //nolint:gosec // No browser reads it.
}

func fail(w http.ResponseWriter, action, code string) {
	w.WriteHeader(http.StatusBadRequest)
	failure := "<Error><Type>Sender</Type><Code>" + code + "</Code><Message>no</Message></Error>"
	if action == "DescribeLoadBalancers" {
		_, _ = fmt.Fprintf(w, "<ErrorResponse>%s<RequestId>r</RequestId></ErrorResponse>", failure) //nolint:gosec // No browser reads it.
		return
	}
	_, _ = fmt.Fprintf(w, "<Response><Errors>%s</Errors><RequestID>r</RequestID></Response>", failure) //nolint:gosec // No browser reads it.
}

func (f *fakeAWS) act(action string, form url.Values) (answer, code string) {
	switch action {
	case "DescribeLoadBalancers":
		name := form.Get("Names.member.1")
		state, there := f.balancers[name]
		if !there {
			return "", "LoadBalancerNotFound"
		}
		return fmt.Sprintf(`<DescribeLoadBalancersResult><LoadBalancers><member><LoadBalancerArn>%s</LoadBalancerArn><State><Code>%s</Code></State></member></LoadBalancers></DescribeLoadBalancersResult>`,
			balancerARN(name), state), ""
	case "DescribeVpcEndpointServiceConfigurations":
		return f.list(form), ""
	case "CreateVpcEndpointServiceConfiguration":
		return f.create(form)
	case "CreateTags":
		s := f.find(form.Get("ResourceId.1"))
		s.tags[form.Get("Tag.1.Key")] = form.Get("Tag.1.Value")
		return "<return>true</return>", ""
	case "DescribeVpcEndpointServicePermissions":
		var items string
		for _, principal := range f.find(form.Get("ServiceId")).admitted {
			items += "<item><principal>" + principal + "</principal></item>"
		}
		return "<allowedPrincipals>" + items + "</allowedPrincipals>", ""
	case "ModifyVpcEndpointServicePermissions":
		s := f.find(form.Get("ServiceId"))
		s.admitted = without(append(s.admitted, listed(form, "AddAllowedPrincipals")...), listed(form, "RemoveAllowedPrincipals"))
		return "<returnValue>true</returnValue>", ""
	case "DeleteVpcEndpointServiceConfigurations":
		return f.remove(listed(form, "ServiceId")), ""
	case "DescribeVpcEndpointConnections":
		var items string
		for _, id := range f.find(form.Get("Filter.1.Value.1")).connected {
			items += "<item><vpcEndpointId>" + id + "</vpcEndpointId><vpcEndpointState>" + cmp.Or(f.find(form.Get("Filter.1.Value.1")).state, "available") + "</vpcEndpointState></item>"
		}
		return "<vpcEndpointConnectionSet>" + items + "</vpcEndpointConnectionSet>", ""
	case "RejectVpcEndpointConnections":
		s := f.find(form.Get("ServiceId"))
		s.connected = without(s.connected, listed(form, "VpcEndpointId"))
		return "<unsuccessful/>", ""
	}
	return "", "InvalidAction"
}

// listed returns the values of a list in a form: Name.1, Name.2.
func listed(form url.Values, name string) []string {
	var values []string
	for i := 1; form.Has(name + "." + strconv.Itoa(i)); i++ {
		values = append(values, form.Get(name+"."+strconv.Itoa(i)))
	}
	return values
}

func (f *fakeAWS) find(id string) *fakeService {
	i := slices.IndexFunc(f.services, func(s *fakeService) bool { return s.id == id })
	if i < 0 {
		return &fakeService{tags: map[string]string{}}
	}
	return f.services[i]
}

func (s *fakeService) text() string {
	var tags string
	for key, value := range s.tags {
		tags += "<item><key>" + html.EscapeString(key) + "</key><value>" + html.EscapeString(value) + "</value></item>"
	}
	return fmt.Sprintf(`<serviceId>%s</serviceId><serviceName>com.amazonaws.vpce.eu-west-1.%s</serviceName><networkLoadBalancerArnSet><item>%s</item></networkLoadBalancerArnSet><tagSet>%s</tagSet>`,
		s.id, s.id, s.balancer, tags)
}

// list returns one service per page.
func (f *fakeAWS) list(form url.Values) string {
	var found []*fakeService
	key, filtered := strings.CutPrefix(form.Get("Filter.1.Name"), "tag:")
	for _, s := range f.services {
		if !f.late && !filtered || filtered && s.tags[key] == form.Get("Filter.1.Value.1") {
			found = append(found, s)
		}
	}
	page, _ := strconv.Atoi(form.Get("NextToken"))
	if page >= len(found) {
		return "<serviceConfigurationSet/>"
	}
	return fmt.Sprintf("<serviceConfigurationSet><item>%s</item></serviceConfigurationSet><nextToken>%d</nextToken>", found[page].text(), page+1)
}

func (f *fakeAWS) create(form url.Values) (answer, code string) {
	token, balancer := form.Get("ClientToken"), form.Get("NetworkLoadBalancerArn.1")
	for _, s := range f.services {
		switch {
		case token != "" && s.token == token:
			return "<serviceConfiguration>" + s.text() + "</serviceConfiguration>", ""
		case s.balancer == balancer:
			return "", "InvalidParameter"
		}
	}
	s := &fakeService{id: fmt.Sprintf("vpce-svc-%d", len(f.services)+1), balancer: balancer, token: token, tags: map[string]string{}, acceptance: form.Get("AcceptanceRequired")}
	for i := 1; form.Has(fmt.Sprintf("TagSpecification.1.Tag.%d.Key", i)); i++ {
		s.tags[form.Get(fmt.Sprintf("TagSpecification.1.Tag.%d.Key", i))] = form.Get(fmt.Sprintf("TagSpecification.1.Tag.%d.Value", i))
	}
	f.services = append(f.services, s)
	if f.lost {
		f.lost = false
		return "", "InternalError"
	}
	return "<serviceConfiguration>" + s.text() + "</serviceConfiguration>", ""
}

func (f *fakeAWS) remove(ids []string) string {
	var refused string
	for _, id := range ids {
		code := f.unsuccessful
		if code == "" && len(f.find(id).connected) > 0 {
			code = stillConnected
		}
		if code != "" {
			refused += "<item><resourceId>" + id + "</resourceId><error><code>" + code + "</code><message>no</message></error></item>"
			continue
		}
		f.services = slices.DeleteFunc(f.services, func(s *fakeService) bool { return s.id == id })
	}
	return "<unsuccessful>" + refused + "</unsuccessful>"
}
