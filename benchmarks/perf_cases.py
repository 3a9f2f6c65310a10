"""Thirty perf cases, from a microsecond to tens of milliseconds.

Of those that both lists have. Left out is what takes the C++ tool minutes: it repeats by bytes, up to 8 GB of them, and
sorting 200,000 values 5,000 times takes one.
"""

_ROPE = "n_ctx=512,fs=1.000000,ef=0.000000,af=1.000000"
_SOFT_MAX = "mask=0,sinks=0,m_prec=f32,nr23=[1,1],scale=1.000000,max_bias=0.000000,inplace=0"
_FLASH = "mask=1,sinks=0,max_bias=0.000000,logit_softcap=0.000000,prec=f32,type_K=f16,type_V=f16,permute=[0,1,2,3]"
_CONV = "stride0=1,stride1=1,padding0=0,padding1=0,dilation0=1,dilation1=1,cwhn=0"
_MATRICES = "bs=[1,1],nr=[1,1],per=[0,1,2,3],k_v=0,o=1"
_PLAIN = "permute_src=[0,0,0,0],permute_dst=[0,0,0,0],_src_transpose=0"

PERF_CASES = (
    "ADD(type=f32,ne=[4096,1,1,1],nr=[1,1,1,1],nf=1,perm1=0,src_overlap=0)",
    "ADD(type=f32,ne=[4096,1,1,1],nr=[1,512,1,1],nf=1,perm1=0,src_overlap=0)",
    "ADD_ID(type_a=f32,type_b=f32,n_embd=2880,n_experts=32,n_experts_used=4,n_token=512)",
    "ACC(type=f32,ne_a=[256,17,2,3],ne_b=[128,16,2,3],stride_dim=-1)",
    "ARGMAX(type=f32,ne=[32,10,1,1])",
    "ARGMAX(type=f32,ne=[1024,10,1,1])",
    "COL2IM_1D(type=f32,K=16,OC=512,T_in=2048,s0=8,p0=0)",
    f"CONV_2D(ne_input=[19,19,4,16],ne_kernel=[2,2,4,4],type_kernel=f16,{_CONV})",
    f"CONV_2D(ne_input=[58,58,32,1],ne_kernel=[3,3,32,64],type_kernel=f32,{_CONV})",
    "CONV_TRANSPOSE_2D(kernel_type=f32,ne_input=[10,10,9,1],ne_kernel=[3,3,1,9],stride=2)",
    f"CPY(type_src=f32,type_dst=f16,ne_src=[512,3072,1,1],{_PLAIN})",
    f"CPY(type_src=q4_0,type_dst=f32,ne_src=[8192,512,2,1],{_PLAIN})",
    "CUMSUM(type=f32,ne=[1024,4,1,1])",
    f"FLASH_ATTN_EXT(hsk=64,hsv=64,nh=8,nr23=[1,1],kv=4096,nb=1,{_FLASH})",
    "IM2COL(type_input=f32,type_kernel=f16,dst_type=f32,ne_input=[32,32,256,1],ne_kernel=[3,3,256,1],"
    "s0=1,s1=1,p0=1,p1=1,d0=1,d1=1,is_2D=1)",
    "MEAN(type=f32,ne=[256,256,3,1])",
    f"MUL_MAT(type_a=f16,type_b=f32,m=4096,n=1,k=14336,{_MATRICES})",
    f"MUL_MAT(type_a=q4_0,type_b=f32,m=4096,n=8,k=14336,{_MATRICES})",
    f"MUL_MAT_HADAMARD(type_a=f32,type_b=f32,m=256,n=1,k=256,{_MATRICES})",
    "MUL_MAT_ID(type_a=q4_0,type_b=f32,n_mats=128,n_used=8,b=0,m=768,n=1,k=2048)",
    "PAD_REFLECT_1D(type=f32,ne_a=[512,34,2,1],pad_0=10,pad_1=9)",
    f"ROPE(type=f32,ne_a=[128,12,512,1],n_dims=128,mode=8,{_ROPE},ff=0,v=0,inplace=0)",
    f"ROPE_BACK(type=f16,ne_a=[80,16,2,1],n_dims=80,mode=24,{_ROPE},ff=1,v=1,inplace=0)",
    f"SOFT_MAX(type=f32,ne=[8192,4,1,1],{_SOFT_MAX})",
    "SOLVE_TRI(type=f32,ne_lhs=[64,64,4,4],ne_rhs=[32,64,4,4])",
    "SSM_CONV(type=f32,ne_a=[4,3328,1,1],ne_b=[4,3328,1,1])",
    "SUM(type=f32,ne=[8192,1,1,1])",
    "SUM_ROWS(type=f32,ne=[128,8192,1,1],permute=0,slice=0)",
    "TOP_K(type=f32,ne=[1000,1,1,1],k=400,ties=0)",
    "TRI(type=f32,ne=[256,256,4,4],tri_type=3)",
)
