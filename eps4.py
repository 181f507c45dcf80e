import sys, json; sys.path[:0]=['/work/w/31']
nb=json.load(open('/work/w/31/notebooks/31_sharded_models.ipynb'))
code=[''.join(c['source']) for c in nb['cells'] if c['cell_type']=='code'][:6]
for c in code: 
    if 'def half_step' not in c: exec(c)
def distance(a,b): return np.linalg.norm([np.linalg.norm(x-y) for x,y in zip(a,b)])
start=list(first_weights())
z=lambda w:[tf.Variable(tf.zeros_like(w)), tf.Variable(tf.zeros_like(w))]
def run(k_of, lose=None):
    alone=[tf.Variable(w) for w in start]; state=[z(w) for w in alone]
    for t,(x,y) in enumerate(zip(images,labels),1):
        if t==lose: state=[z(w) for w in alone]
        k=k_of(t); gs=[]
        for xx,yy in zip(np.split(x,k),np.split(y,k)):
            with tf.GradientTape() as tape: loss=loss_of(plain,alone,xx,yy)
            gs.append(tape.gradient(loss,alone))
        for w,q,(m,v) in zip(alone,zip(*gs),state): w.assign(adam(w,tf.reduce_mean(tf.stack(q),0),m,v,t))
    return [w.numpy() for w in alone]
a=run(lambda t:2); way=distance(start,a)
print('1 step in thirds', distance(a,run(lambda t:2 if t<8 else 3))/way, flush=True)
print('3 steps in thirds', distance(a,run(lambda t:2 if t<6 else 3))/way, flush=True)
print('2 steps in thirds', distance(a,run(lambda t:2 if t<7 else 3))/way, flush=True)
print('lost moments', distance(a,run(lambda t:2,8))/way, flush=True)
