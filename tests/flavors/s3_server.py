"""An S3 server with a bucket that checks keys and signatures.

Arguments: the address to listen on, the number of objects, and the secret in place of a random one, if
given. Prints what a client needs, as JSON; serves until its standard input ends. Every request is a line on standard error.
"""

import json
import sys
import urllib.request

import boto3
from moto.iam.models import iam_backends
from moto.server import ThreadedMotoServer

address, objects = sys.argv[1], int(sys.argv[2])
server = ThreadedMotoServer(ip_address=address, port=9000, verbose=False)
server.start()
url = f"http://{address}:9000"

first = {"aws_access_key_id": "first", "aws_secret_access_key": "first"}
iam = boto3.client("iam", endpoint_url=url, region_name="us-east-1", **first)
iam.create_user(UserName="ann")
allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
iam.put_user_policy(UserName="ann", PolicyName="s3", PolicyDocument=policy)
key = iam.create_access_key(UserName="ann")["AccessKey"]
for secret in sys.argv[3:]:
    key["SecretAccessKey"] = secret
    for regions in iam_backends.values():
        for backend in regions.values():
            for user in backend.users.values():
                for known in user.access_keys:
                    known.secret_access_key = secret

s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **first)
s3.create_bucket(Bucket="data")
for number in range(objects):
    body = f"object {number}\n".encode() * 1000
    s3.put_object(Bucket="data", Key=f"set/part/{number}.txt", Body=body)
s3.put_object(Bucket="data", Key="set/s3-prefill.log", Body=b"not the log")
s3.put_object(Bucket="data", Key="elsewhere.txt", Body=b"not in the prefix")

# From here on, every request needs a valid key.
plain = {"Content-Type": "text/plain"}
urllib.request.urlopen(urllib.request.Request(f"{url}/moto-api/reset-auth", b"0", plain))
print(json.dumps({"url": url, "key": key["AccessKeyId"], "secret": key["SecretAccessKey"]}), flush=True)
sys.stdin.read()
server.stop()
